#!/usr/bin/python3
"""Agent of the conformance guest: verbs on the guest's rdma_rxe, driven over TCP.

Protocol: one JSON object a line in both directions.

    -> {"id": 7, "call": "alloc_pd", "args": {}}
    <- {"id": 7, "ok": {"handle": 1}}
    <- {"id": 7, "error": {"kind": "verbs", "errno": 22, "message": "..."}}

Every connection has its own verbs context and its own handles; when it ends, whatever it left open is closed and
whatever it started is killed, so a client that dies leaves nothing behind. Calls of one connection run in order.
"""

import json
import socketserver
import sys
import traceback

import programs
import services
import verbs

VERSION = 2


class Refused(Exception):
    """The request itself is wrong: unknown call, unknown handle, missing argument."""


class Session:
    """The objects one connection has created, by handle."""

    def __init__(self):
        self.objects = {}
        self.last_handle = 0
        self.device = None

    def add(self, thing):
        """Keeps a new object and returns its handle."""
        self.last_handle += 1
        self.objects[self.last_handle] = thing
        return self.last_handle

    def get(self, handle, kind):
        """The object of a handle, which must be of the given class."""
        thing = self.objects.get(handle)
        if not isinstance(thing, kind):
            raise Refused(f"handle {handle} is not an open {kind.__name__}")
        return thing

    def open_device(self):
        """The verbs context of this session, opened when first asked for."""
        if self.device is None:
            self.device = verbs.Device()
        return self.device

    def close(self, handle):
        """Closes one object; the handle stays valid when closing fails."""
        if handle not in self.objects:
            raise Refused(f"handle {handle} is not open")
        self.objects[handle].close()
        del self.objects[handle]

    def close_all(self):
        """Closes everything, newest first, because older objects are the parents of newer ones."""
        for handle in sorted(self.objects, reverse=True):
            try:
                self.close(handle)
            except Exception as error:  # one object that will not close must not keep the others open
                print(f"agent: closing handle {handle}: {error}", flush=True)
        self.objects.clear()
        if self.device is not None:
            self.device.close()


def hello(_session):
    return {"version": VERSION, "calls": sorted(CALLS), **programs.system()}


def close(session, handle):
    session.close(handle)
    return {}


CALLS = {"hello": hello, "close": close, **verbs.CALLS, **services.CALLS, **programs.CALLS}


def describe(error):
    """An exception as the error object of a reply."""
    if isinstance(error, (Refused, TypeError, KeyError, ValueError)):
        return {"kind": "request", "errno": 0, "message": f"{type(error).__name__}: {error}"}
    errno = getattr(error, "error_code", None) or getattr(error, "errno", None) or 0
    kind = "verbs" if type(error).__module__.startswith("pyverbs") else "system"
    return {"kind": kind, "errno": errno, "message": str(error).strip()}


def answer(session, line):
    """One request line to one reply object; never raises."""
    reply = {"id": None}
    try:
        request = json.loads(line)
        reply["id"] = request.get("id")
        call = CALLS.get(request.get("call"))
        if call is None:
            raise Refused(f"unknown call {request.get('call')!r}")
        reply["ok"] = call(session, **request.get("args", {}))
    except Exception as error:  # the client gets it; the agent lives on
        if not isinstance(error, Refused):
            traceback.print_exc(limit=4)
        reply["error"] = describe(error)
    return reply


class Connection(socketserver.StreamRequestHandler):
    """One client."""

    disable_nagle_algorithm = True

    def handle(self):
        session = Session()
        try:
            for line in self.rfile:
                self.wfile.write(json.dumps(answer(session, line)).encode() + b"\n")
        except OSError as error:
            print(f"agent: connection lost: {error}", flush=True)
        finally:
            session.close_all()


class Server(socketserver.ThreadingTCPServer):
    """Listens on all addresses of the guest, IPv4 and IPv6."""

    allow_reuse_address = True
    daemon_threads = True
    address_family = socketserver.socket.AF_INET6


def main():
    port = int(sys.argv[1])
    with Server(("::", port), Connection) as server:
        print(f"agent: listening on port {port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
