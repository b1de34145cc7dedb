"""What goes beyond one connection: shared receive queues, windows of type 1, multicast groups, asynchronous events."""

import ctypes
import ipaddress
import select
import socket
import struct

import pyverbs.enums as e
from pyverbs.mr import MW, MWBind
from pyverbs.pd import PD
from pyverbs.qp import QPEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import RecvWR

import verbs

INTERFACE = "eth0"
# struct ibv_qp: six pointers, then handle, number, state, type.
NUMBER_OFFSET = 6 * 8 + 4
POINTER = struct.Struct("<Q")
WORD = struct.Struct("<I")


def create_srq(session, pd, max_wr, max_sge):
    srq = SRQ(session.get(pd, PD), SrqInitAttr(SrqAttr(max_wr, max_sge, 0)))
    return {"handle": session.add(srq)}


def post_srq_recv(session, srq, wr_id, sges):
    elements = verbs.scatter(sges)
    session.get(srq, SRQ).post_recv(RecvWR(wr_id, len(elements), elements))
    return {}


def arm_srq(session, srq, limit):
    """Asks for an event when fewer than `limit` receives are left."""
    session.get(srq, SRQ).modify(SrqAttr(0, 0, limit), e.IBV_SRQ_LIMIT)
    return {}


def bind_mw(session, qp, mw, mr, addr, length, access, wr_id):
    """Binds a window of type 1; returns the key it answers to from then on."""
    window = session.get(mw, MW)
    info = verbs.window_info(session.get(mr, verbs.Memory), addr, length, access)
    session.get(qp, QPEx).bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED, wr_id))
    return {"rkey": window.rkey}


def native(qp):
    """The address of the `struct ibv_qp` behind a queue pair: pyverbs does not tell it, but attaching takes it.

    It is one of the pointers in the Python object, and the one that leads to the queue pair's number. Memory is read
    through the kernel, which refuses an address that is none.
    """
    words = ctypes.string_at(id(qp), type(qp).__basicsize__)
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for (candidate,) in POINTER.iter_unpack(words[: len(words) // 8 * 8]):
            try:
                memory.seek(candidate + NUMBER_OFFSET)
                if memory.read(4) == WORD.pack(qp.qp_num):
                    return candidate
            except (OSError, OverflowError, ValueError):
                continue
    raise ValueError("the queue pair's structure was not found")


class Membership:
    """A queue pair in a multicast group, and the interface listening to the group."""

    def __init__(self, qp, group):
        self.group = ipaddress.IPv6Address(group)
        self.qp = native(qp)
        self.library = ctypes.CDLL("libibverbs.so.1", use_errno=True)
        self.listener = listen_to(self.group)
        self.change("ibv_attach_mcast")

    def change(self, call):
        """Attaches or detaches."""
        gid = (ctypes.c_char * 16).from_buffer_copy(self.group.packed)
        error = getattr(self.library, call)(ctypes.c_void_p(self.qp), gid, ctypes.c_uint16(0))
        if error:
            raise OSError(error, f"{call} of {self.group}")

    def close(self):
        self.change("ibv_detach_mcast")
        self.listener.close()


def listen_to(group):
    """A socket that keeps the interface in a group: rdma_rxe does not tell the IP stack by itself."""
    index = socket.if_nametoindex(INTERFACE)
    if group.ipv4_mapped:
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        request = struct.pack("4s4si", group.ipv4_mapped.packed, bytes(4), index)
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    else:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        request = struct.pack("16si", group.packed, index)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
    return listener


def attach(session, qp, group):
    return {"handle": session.add(Membership(session.get(qp, QPEx), group))}


def async_event(session, timeout_ms):
    """The next asynchronous event of the device, as its `ibv_event_type`, or nothing when the time is over."""
    device = session.open_device()
    ready, _, _ = select.select([device.events], [], [], timeout_ms / 1000)
    if not ready:
        return {"event": None}
    event = device.context.get_async_event()
    kind = int(event.event_type)
    event.ack()
    return {"event": kind}


CALLS = {
    call.__name__: call
    for call in (create_srq, post_srq_recv, arm_srq, bind_mw, attach, async_event)
}
