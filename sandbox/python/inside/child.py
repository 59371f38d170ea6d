"""A child's life: wait for Enter, lock down, then run what the host sends."""

import io
import os
import random
import signal
import sys

import hatch
import lockdown


def main() -> None:
    lockdown.mount_tmpfs("/tmp", mode="1777", size=64 << 20, nr_inodes=16384)
    channel = hatch.Channel(3)
    kind, body, fds = channel.receive_with_descriptors()
    if kind != hatch.ENTER:
        os._exit(0)
    enter = hatch.loads(body)
    try:
        session = _enter(channel, enter, fds)
    except Exception as error:
        channel.send(hatch.READY, {"error": f"{type(error).__name__}: {error}"})
        os._exit(72)
    while True:
        kind, body = channel.receive()
        if kind == hatch.RUN:
            outcome = session.run(hatch.loads(body))
            _flush()
            channel.send(hatch.DONE, outcome)
        elif kind == hatch.LOOK:
            channel.send(hatch.VALUE, session.look())
        else:
            os._exit(0)


def _enter(channel: "hatch.Channel", enter: dict, fds: list[int]):
    import session

    uid, policy = enter["uid"], enter["policy"]
    if enter["attach"]:
        lockdown.attach(fds[0], "/session")
    else:
        lockdown.mount_tmpfs("/session", mode="700", uid=uid, gid=uid, size=policy["workspace_max_bytes"], nr_inodes=enter["inodes"])
    keep = lockdown.clone_mount("/session")
    os.umask(0o022)
    os.chdir("/session")
    _reseed()
    sys.stdin = open(0)
    sys.stdout, sys.stderr = _text(1), _text(2)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    signal.signal(signal.SIGINT, channel.on_interrupt)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
    live = session.Session(channel, {"sandbox_id": enter["sandbox_id"], "policy": policy, "rules": enter["rules"]})
    lockdown.lock(enter)
    if not enter["attach"]:
        os.mkdir("/session/artifacts")
    channel.send(hatch.READY, {"error": ""}, [keep])
    os.close(keep)
    return live


def _text(fd: int) -> io.TextIOWrapper:
    """A text stream written through: what is printed before a kill is seen."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True)


def _reseed() -> None:
    """What must differ between siblings, and was the same in the zygote."""
    import tempfile

    random.seed(os.urandom(32))
    tempfile._name_sequence = None  # type: ignore[attr-defined]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
