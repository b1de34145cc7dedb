"""Programs in the guest (ibv_rc_pingpong, perftest, rping, ...), its files and its counters."""

import os
import platform
import signal
import subprocess
import tempfile

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"


def system():
    """Which software the guest runs."""
    version = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "rdma-core"], capture_output=True, text=True, check=False
    )
    return {"kernel": platform.release(), "rdma_core": version.stdout.strip()}


class Program:
    """A started program and its combined output."""

    def __init__(self, argv, env):
        # A file, not a pipe: a program that prints more than a pipe holds must not stop because nobody reads.
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            start_new_session=True,
        )

    def wait(self, timeout_ms):
        """The exit status (negative: the signal), or None while it still runs after the timeout."""
        try:
            return self.process.wait(timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            return None

    def text(self):
        """All it has printed so far."""
        size = os.fstat(self.output.fileno()).st_size
        return os.pread(self.output.fileno(), size, 0).decode(errors="replace")

    def kill(self, number):
        """Sends a signal to the program and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def close(self):
        """Ends it if it still runs."""
        self.kill(signal.SIGKILL)
        self.process.wait()
        self.output.close()


def spawn(session, argv, env=None):
    program = Program(argv, env or {})
    return {"handle": session.add(program), "pid": program.process.pid}


def wait(session, handle, timeout_ms):
    program = session.get(handle, Program)
    code = program.wait(timeout_ms)
    return {"exit": code, "output": program.text()}


def kill(session, handle, signal=signal.SIGTERM):
    session.get(handle, Program).kill(signal)
    return {}


def counters(_session):
    values = {}
    for name in sorted(os.listdir(COUNTERS)):
        with open(os.path.join(COUNTERS, name), encoding="ascii") as file:
            text = file.read().strip()
        if text.lstrip("-").isdigit():  # "lifespan" and the like are settings, but numbers too
            values[name] = int(text)
    return {"counters": values}


def read_file(_session, path):
    with open(path, "rb") as file:
        return {"data": file.read().hex()}


def write_file(_session, path, data):
    with open(path, "wb") as file:
        file.write(bytes.fromhex(data))
    return {}


def power_off(_session):
    """Asks init to power the guest off; the reply may or may not arrive."""
    with open("/proc/sysrq-trigger", "w", encoding="ascii") as trigger:
        trigger.write("o")
    return {}


CALLS = {
    "spawn": spawn,
    "wait": wait,
    "kill": kill,
    "counters": counters,
    "read_file": read_file,
    "write_file": write_file,
    "power_off": power_off,
}
