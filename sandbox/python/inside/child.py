"""A child's life: lock down on Enter, wait for Assign, then run what the host sends.

What can be made before the fork is made in the zygote, by Child: each page that a
child writes to must be copied first, so the less it does, the faster it is and the
less memory it has of its own.
"""

import io
import os
import signal
import sys

import hatch
import lockdown
import session

TMP_BYTES, INODES = 64 << 20, 16384


class Child:
    """What all children of a zygote have in common. filters are seccomp programs by
    name; policy and rules are those of most sandboxes."""

    def __init__(self, filters: "dict[str, bytes]", policy: dict, rules: dict):
        self._filters = {name: lockdown.Filter(program) for name, program in filters.items()}
        os.umask(0o022)
        sys.stdin = open(0)
        sys.stdout, sys.stderr = _text(1), _text(2)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        self._channel = hatch.Channel()
        self._session = session.Session(self._channel)
        self._session.enter(policy, rules)
        signal.signal(signal.SIGINT, self._channel.on_interrupt)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
        lockdown.before_fork()
        self._session.leave_home()

    def live(self) -> None:
        """Never returns. The descriptors 0 to 3 are in their places."""
        channel, live = self._channel, self._session
        channel.attach(3)
        _reseed()
        kind, body, fds = channel.receive_with_descriptors()
        if kind != hatch.ENTER:
            os._exit(0)
        try:
            keep = self._enter(hatch.loads(body), fds)
        except Exception as error:
            channel.send(hatch.READY, {"error": f"{type(error).__name__}: {error}"})
            os._exit(72)
        channel.send(hatch.READY, {"error": ""}, [keep])
        os.close(keep)
        while True:
            kind, body = channel.receive()
            if kind == hatch.RUN:
                outcome = live.run(hatch.loads(body))
                _flush()
                channel.send(hatch.DONE, outcome)
            elif kind == hatch.ASSIGN:
                assigned = hatch.loads(body)
                if assigned:
                    live.enter(assigned["policy"], assigned["rules"])
            elif kind == hatch.LOOK:
                channel.send(hatch.VALUE, live.answer(hatch.loads(body)))
            else:
                os._exit(0)

    def _enter(self, enter: dict, fds: "list[int]") -> int:
        """Locks down; returns the descriptor of a clone of the /session mount."""
        uid = enter["uid"]
        lockdown.mount_tmpfs("/tmp", mode="1777", size=TMP_BYTES, nr_inodes=INODES)
        if enter["attach"]:
            lockdown.attach(fds[0], "/session")
        else:
            lockdown.mount_tmpfs("/session", mode="700", uid=uid, gid=uid, size=enter["workspace"], nr_inodes=INODES)
            os.mkdir("/session/artifacts")
            os.chown("/session/artifacts", uid, uid)
        keep = lockdown.clone_mount("/session")
        os.chdir("/session")
        lockdown.lock(uid, lockdown.landlock_ruleset() if enter["landlock"] else -1, self._filters[enter["filter"]])
        return keep


def _text(fd: int) -> io.TextIOWrapper:
    """A text stream written through: what is printed before a kill is seen."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True)


def _reseed() -> None:
    """What must differ between siblings, and was the same in the zygote. Python's own
    random does so by itself after a fork."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
