"""Verbs objects of the guest's rdma_rxe, through pyverbs.

Numbers on the protocol are the plain values of the verbs enumerations. Immediate data is the value of its four wire
bytes read big-endian; pyverbs hands the raw word through, so it is swapped here. Memory travels as hexadecimal.
"""

import ctypes
import ipaddress
import mmap
import os
import socket
import threading
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QPAttr, QPCap, QPEx, QPInitAttrEx
from pyverbs.srq import SRQ
from pyverbs.wr import SGE, RecvWR, SendWR

import flush

NAME = "rxe0"
SYSFS = f"/sys/class/infiniband/{NAME}/ports/1"
POLL_INTERVAL = 0.0005
BIND_MW, LOCAL_INV, SEND_WITH_INV, ATOMIC_WRITE = 8, 7, 9, 15
WITH_REMOTE = {0, 1, 4}
WITH_IMMEDIATE = {1, 3}
ATOMIC = {5, 6}
WC_WITH_IMM = 2
# The library's flag, and the kernel's: rdma_rxe hands the kernel's through, which programs read as another one.
WC_WITH_INV = 8 | 4
ZERO_SGE = {"addr": 0, "length": 0, "lkey": 0}


EVENT_FILE = "anon_inode:[infinibandevent]"


def event_files():
    """File descriptors that verbs events come from."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}") == EVENT_FILE:
                found.add(int(number))
        except FileNotFoundError:
            continue  # the descriptor of the listing itself, or one that another thread has closed
    return found


class Device:
    """The opened device, and the descriptor its asynchronous events come from, which pyverbs does not tell."""

    one_at_a_time = threading.Lock()

    def __init__(self):
        with self.one_at_a_time:
            before = event_files()
            self.context = Context(name=NAME)
            (self.events,) = event_files() - before

    def close(self):
        self.context.close()


class Memory:
    """A registered region; several regions may share one buffer."""

    def __init__(self, pd, buffer, offset, length, access):
        self.buffer = buffer
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(buffer)) + offset
        self.length = length
        self.region = MR(pd, length, access, address=self.address)

    def view(self, offset, length):
        """The bytes of a part of the region."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise ValueError(f"{offset}+{length} lies outside the region of {self.length} bytes")
        return (ctypes.c_char * length).from_address(self.address + offset)

    def close(self):
        self.region.close()


def describe_memory(session, memory):
    return {
        "handle": session.add(memory),
        "addr": memory.address,
        "length": memory.length,
        "lkey": memory.region.lkey,
        "rkey": memory.region.rkey,
    }


def read_text(path):
    """A sysfs file, or None where the entry is empty (reading it fails with EINVAL)."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def gids():
    """The used entries of the GID table."""
    found = []
    for index in sorted(map(int, os.listdir(f"{SYSFS}/gids"))):
        kind = read_text(f"{SYSFS}/gid_attrs/types/{index}")
        if kind:
            gid = ipaddress.IPv6Address(read_text(f"{SYSFS}/gids/{index}"))
            found.append({"index": index, "gid": gid.compressed, "type": kind})
        elif found and index > found[-1]["index"] + 16:
            break  # the table has 1024 entries and its used ones lie together
    return found


def plain(thing):
    """The integer attributes of a pyverbs attribute object."""
    names = [name for name in dir(thing) if not name.startswith("_")]
    values = {name: getattr(thing, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, int)}


def device(session):
    context = session.open_device().context
    port = plain(context.query_port(1))
    netdev = read_text(f"{SYSFS}/gid_attrs/ndevs/0")
    return {
        "name": NAME,
        "attributes": plain(context.query_device()),
        "port": port,
        "gids": gids(),
        "netdev": netdev,
        "mac": read_text(f"/sys/class/net/{netdev}/address"),
        "mtu": int(read_text(f"/sys/class/net/{netdev}/mtu")),
    }


def alloc_pd(session):
    return {"handle": session.add(PD(session.open_device().context))}


def create_cq(session, cqe):
    return {"handle": session.add(CQ(session.open_device().context, cqe))}


def register_mr(session, pd, length, access, fill=None):
    memory = Memory(session.get(pd, PD), mmap.mmap(-1, max(length, 1)), 0, length, access)
    if fill is not None:
        pattern = bytes.fromhex(fill)
        memory.view(0, length).raw = (pattern * (length // len(pattern) + 1))[:length]
    return describe_memory(session, memory)


def register_part(session, pd, mr, offset, length, access):
    whole = session.get(mr, Memory)
    whole.view(offset, length)
    start = whole.address - ctypes.addressof(ctypes.c_char.from_buffer(whole.buffer)) + offset
    return describe_memory(session, Memory(session.get(pd, PD), whole.buffer, start, length, access))


def read_memory(session, mr, offset, length):
    data = session.get(mr, Memory).view(offset, length).raw
    return {"data": data.hex()}


def write_memory(session, mr, offset, data):
    raw = bytes.fromhex(data)
    session.get(mr, Memory).view(offset, len(raw)).raw = raw
    return {}


def alloc_mw(session, pd, type):
    window = MW(session.get(pd, PD), type)
    return {"handle": session.add(window), "rkey": window.rkey}


def send_operations(qp_type):
    """Every operation the extended queue pair of rxe offers for a service."""
    names = ["SEND", "SEND_WITH_IMM"]
    if qp_type != e.IBV_QPT_UD:
        names += ["RDMA_WRITE", "RDMA_WRITE_WITH_IMM"]
    if qp_type == e.IBV_QPT_RC:
        names += ["SEND_WITH_INV", "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "LOCAL_INV", "BIND_MW",
                  "ATOMIC_WRITE"]
    flags = 0
    for name in names:
        flags |= getattr(e, f"IBV_QP_EX_WITH_{name}")
    return flags


def create_qp(session, pd, send_cq, recv_cq, cap, sig_all=False, qp_type=e.IBV_QPT_RC, srq=None):
    init = QPInitAttrEx(
        qp_type=qp_type,
        scq=session.get(send_cq, CQ),
        rcq=session.get(recv_cq, CQ),
        srq=None if srq is None else session.get(srq, SRQ),
        cap=QPCap(**cap),
        sq_sig_all=int(sig_all),
        comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        pd=session.get(pd, PD),
        send_ops_flags=send_operations(qp_type),
    )
    qp = QPEx(session.open_device().context, init)
    return {"handle": session.add(qp), "qp_num": qp.qp_num}


ATTRIBUTES = {
    "qp_state": e.IBV_QP_STATE,
    "cur_qp_state": e.IBV_QP_CUR_STATE,
    "en_sqd_async_notify": e.IBV_QP_EN_SQD_ASYNC_NOTIFY,
    "qp_access_flags": e.IBV_QP_ACCESS_FLAGS,
    "pkey_index": e.IBV_QP_PKEY_INDEX,
    "port_num": e.IBV_QP_PORT,
    "qkey": e.IBV_QP_QKEY,
    "ah_attr": e.IBV_QP_AV,
    "path_mtu": e.IBV_QP_PATH_MTU,
    "timeout": e.IBV_QP_TIMEOUT,
    "retry_cnt": e.IBV_QP_RETRY_CNT,
    "rnr_retry": e.IBV_QP_RNR_RETRY,
    "rq_psn": e.IBV_QP_RQ_PSN,
    "max_rd_atomic": e.IBV_QP_MAX_QP_RD_ATOMIC,
    "min_rnr_timer": e.IBV_QP_MIN_RNR_TIMER,
    "sq_psn": e.IBV_QP_SQ_PSN,
    "max_dest_rd_atomic": e.IBV_QP_MAX_DEST_RD_ATOMIC,
    "dest_qp_num": e.IBV_QP_DEST_QPN,
}


def address(dgid, sgid_index, hop_limit=64, traffic_class=0, flow_label=0):
    """The address vector of a RoCE path: always global."""
    gid = GID(ipaddress.IPv6Address(dgid).exploded)
    route = GlobalRoute(dgid=gid, sgid_index=sgid_index)
    route.hop_limit, route.traffic_class, route.flow_label = hop_limit, traffic_class, flow_label
    return AHAttr(gr=route, is_global=1, port_num=1)


def modify_qp(session, qp, **attributes):
    attr, mask = QPAttr(), 0
    for name, value in attributes.items():
        mask |= ATTRIBUTES[name]
        setattr(attr, name, address(**value) if name == "ah_attr" else value)
    session.get(qp, QPEx).modify(attr, mask)
    return {}


def query_qp(session, qp):
    attr, _ = session.get(qp, QPEx).query(sum(ATTRIBUTES.values()))
    return {name: getattr(attr, name) for name in ATTRIBUTES if name != "ah_attr"}


def scatter(sges):
    """A scatter list; pyverbs takes none without an element, and one of no length means the same."""
    return [SGE(**sge) for sge in sges or [ZERO_SGE]]


def post_recv(session, qp, wr_id, sges):
    elements = scatter(sges)
    session.get(qp, QPEx).post_recv(RecvWR(wr_id, len(elements), elements))
    return {}


def window_info(memory, addr, length, access):
    return MWBindInfo(memory.region, addr, length, access)


def bind_window(session, qp, wr_id, flags, bind):
    """BIND_MW of a type 2 window, to the key that the request names."""
    info = window_info(session.get(bind["mr"], Memory), bind["addr"], bind["length"], bind["access"])
    qp.wr_start()
    qp.wr_id, qp.wr_flags = wr_id, flags
    qp.wr_bind_mw(session.get(bind["mw"], MW), bind["rkey"], info)
    qp.wr_complete()


def atomic_write(qp, wr_id, flags, remote, value):
    """ATOMIC_WRITE exists only in the extended interface."""
    qp.wr_start()
    qp.wr_id, qp.wr_flags = wr_id, flags
    qp.wr_atomic_write(remote["rkey"], remote["addr"], bytes.fromhex(value))
    qp.wr_complete()


def post_send(session, qp, wr_id, opcode, flags, sges=(), remote=None, imm=0, compare_add=0, swap=0,
              invalidate=0, bind=None, value=None, flushed=None, datagram=None):
    target = session.get(qp, QPEx)
    elements = scatter(sges)
    if opcode == ATOMIC_WRITE:
        atomic_write(target, wr_id, flags, remote, value)
    elif opcode == BIND_MW:
        bind_window(session, target, wr_id, flags, bind)
    elif opcode == flush.FLUSH:
        flush.post(target, wr_id, flags, remote, **flushed)
    else:
        word = invalidate if opcode in (LOCAL_INV, SEND_WITH_INV) else socket.htonl(imm)
        request = SendWR(wr_id, opcode, len(elements), word, elements, flags)
        if opcode in WITH_REMOTE:
            request.set_wr_rdma(remote["rkey"], remote["addr"])
        elif opcode in ATOMIC:
            request.set_wr_atomic(remote["rkey"], remote["addr"], compare_add, swap)
        elif datagram:
            request.set_wr_ud(session.get(datagram["ah"], AH), datagram["qp_num"], datagram["qkey"])
        target.post_send(request)
    return {}


def create_ah(session, pd, path):
    return {"handle": session.add(AH(session.get(pd, PD), attr=address(**path)))}


def describe_completion(wc):
    """A work completion; what is undefined unless another field says so is left out."""
    entry = {name: getattr(wc, name) for name in
             ("wr_id", "status", "opcode", "byte_len", "qp_num", "src_qp", "vendor_err", "wc_flags")}
    if wc.status == 0 and wc.wc_flags & WC_WITH_IMM:
        entry["imm"] = socket.ntohl(wc.imm_data)
    if wc.status == 0 and wc.wc_flags & WC_WITH_INV:
        entry["invalidated"] = wc.imm_data
    return entry


def poll_cq(session, cq, count, timeout_ms):
    """Waits until `count` completions have come or the time is over; returns what came."""
    queue, found = session.get(cq, CQ), []
    end = time.monotonic() + timeout_ms / 1000
    while True:
        number, batch = queue.poll(count - len(found))
        found += map(describe_completion, batch[:number])
        if len(found) >= count or time.monotonic() >= end:
            return {"completions": found}
        if number == 0:
            time.sleep(POLL_INTERVAL)


CALLS = {
    call.__name__: call
    for call in (device, alloc_pd, create_cq, register_mr, register_part, read_memory, write_memory, alloc_mw,
                 create_qp, create_ah, modify_qp, query_qp, post_recv, post_send, poll_cq)
}
