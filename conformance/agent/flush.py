"""FLUSH, which the guest's pyverbs and its user-space provider do not know but its kernel does.

A READ request is built through the extended interface and, before the doorbell, rewritten in the send queue, which the
process shares with the kernel. The layout is that of `struct rxe_send_wr` in the kernel's user interface.
"""

import ctypes
import struct

from pyverbs.wr import SGE

FLUSH = 14
OPCODE_OFFSET = 12  # after wr_id (8) and a reserved word (4)
TARGET_OFFSET = 24  # after opcode, flags and immediate: address, length, key, placement, selectivity
TARGET = struct.Struct("<QIIBB")
SHARED_WITH_KERNEL = "/dev/infiniband/uverbs"
MARK = 0x55F1_A5B1_C0DE_0000  # no other request carries this wr_id


def shared_mappings():
    """The queues this process shares with the kernel: start and length of each."""
    with open("/proc/self/maps", encoding="ascii") as file:
        lines = [line.split() for line in file if SHARED_WITH_KERNEL in line]
    for fields in lines:
        start, end = (int(text, 16) for text in fields[0].split("-"))
        yield start, end - start


def find(mark):
    """The address of the request that carries `mark` as its wr_id."""
    wanted = mark.to_bytes(8, "little")
    for start, length in shared_mappings():
        place = ctypes.string_at(start, length).find(wanted)
        if place >= 0:
            return start + place
    raise ValueError("the send queue is not among the memory shared with the kernel")


def post(qp, wr_id, flags, remote, length, placement, selectivity):
    """Posts a FLUSH on an extended queue pair.

    The kernel takes the length that it sends from the scatter list, whose memory it does not touch.
    """
    mark = MARK + qp.qp_num
    qp.wr_start()
    qp.wr_id, qp.wr_flags = mark, flags
    qp.wr_rdma_read(remote["rkey"], remote["addr"])
    qp.wr_set_sge(SGE(addr=0, length=length, lkey=0))
    request = find(mark)
    ctypes.memmove(request, wr_id.to_bytes(8, "little"), 8)
    ctypes.memmove(request + OPCODE_OFFSET, FLUSH.to_bytes(4, "little"), 4)
    target = TARGET.pack(remote["addr"], length, remote["rkey"], placement, selectivity)
    ctypes.memmove(request + TARGET_OFFSET, target, TARGET.size)
    qp.wr_complete()
