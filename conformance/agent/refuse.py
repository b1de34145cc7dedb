#!/usr/bin/python3
"""A listener of the connection manager that refuses whoever asks: refuse.py ADDRESS PORT WORD.

A program of its own, because waiting for a request stops every thread of the process.
"""

import sys

import pyverbs.cm_enums as ce
from pyverbs.cmid import CMID, AddrInfo


def main():
    address, port, word = sys.argv[1:]
    place = AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
    listener = CMID(creator=place)
    listener.listen()
    request = listener.get_request()
    request.reject(word.encode())
    request.close()
    listener.close()


if __name__ == "__main__":
    main()
