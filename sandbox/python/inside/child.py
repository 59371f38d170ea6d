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
import network
import place
import session

TMP_BYTES, INODES = 64 << 20, 16384
DATA_BYTES, DATA_INODES = 2 << 30, 1 << 18  # the service, which alone writes there, holds a sandbox to less


class Child:
    """What all children of a zygote have in common. filters are seccomp programs by
    name; readable is what Landlock lets them read; policy and rules are those of most
    sandboxes."""

    def __init__(self, filters: "dict[str, bytes]", readable: "list[str]", policy: dict, rules: dict):
        self._filters = {name: lockdown.Filter(program) for name, program in filters.items()}
        self._readable = readable
        os.umask(0o022)
        sys.stdin = open(0)
        sys.stdout, sys.stderr = _text(1), _text(2)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        self._channel = hatch.Channel()
        self._session = session.Session(self._channel)
        self._session.enter(policy, rules)
        signal.signal(signal.SIGINT, self._channel.on_interrupt)
        signal.signal(signal.SIGUSR1, self._channel.on_attention)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
        network.explain()
        lockdown.before_fork()
        self._session.leave_home()

    def live(self) -> None:
        """Never returns. The descriptors 0 to 3 are in their places."""
        channel, live = self._channel, self._session
        channel.attach(3)
        _reseed()
        kind, body = channel.receive_with_descriptors()
        if kind != hatch.ENTER:
            os._exit(0)
        try:
            keep = self._enter(hatch.loads(body), channel.take_descriptors())
        except Exception as error:
            channel.send(hatch.READY, {"error": f"{type(error).__name__}: {error}"})
            os._exit(72)
        channel.send(hatch.READY, {"error": ""}, keep)
        for fd in keep:
            os.close(fd)
        while True:
            kind, body = channel.receive_with_descriptors()
            if kind == hatch.RUN:
                outcome = live.run(hatch.loads(body))
                for fd in channel.take_descriptors():  # it never came to be recorded
                    os.close(fd)
                _flush()
                channel.send(hatch.DONE, outcome)
            elif kind == hatch.ASSIGN:
                assigned = hatch.loads(body)
                for number, most in assigned.get("limits", {}).items():
                    lockdown.limit(int(number), most)
                if "policy" in assigned:
                    live.enter(assigned["policy"], assigned["rules"])
            elif kind == hatch.LOOK:
                channel.send(hatch.VALUE, live.answer(hatch.loads(body)))
            else:
                os._exit(0)

    def _enter(self, enter: dict, fds: "list[int]") -> "list[int]":
        """Locks down; returns the descriptors that go with Ready: clones of the /session
        and /data mounts, where they are any, and the listener of a network of its own."""
        uid, folder, own = enter["uid"], enter["folder"], enter.get("network")
        if folder:
            place.settle(folder)
        keep = [] if folder else self._mount(enter, fds, uid)
        os.chdir(place.session)
        if own:
            keep.append(network.switch_on(own["host"], own["port"], own["environment"]))
        ruleset = -1
        if enter["landlock"]:
            readable = [*self._readable, folder + "/data"] if folder else self._readable
            ruleset = lockdown.landlock_ruleset(readable, [place.session, place.tmp], own["port"] if own else 0)
        lockdown.lock(uid, ruleset, self._filters.get(enter["filter"]), private=not folder)
        return keep

    def _mount(self, enter: dict, fds: "list[int]", uid: int) -> "list[int]":
        lockdown.mount_tmpfs("/tmp", mode="1777", **lockdown.bounds(TMP_BYTES, INODES))
        if enter["attach"]:
            lockdown.attach(fds[0], "/session")
        else:
            lockdown.mount_tmpfs("/session", mode="700", uid=uid, gid=uid, **lockdown.bounds(enter["workspace"], INODES))
            os.mkdir("/session/artifacts")
            os.chown("/session/artifacts", uid, uid)
        return [lockdown.clone_mount("/session"), _mount_data(fds[1] if len(fds) > 1 else -1)]


def _mount_data(uploads: int) -> int:
    """Puts the sandbox's uploads at /data, a fresh file system where the descriptor of
    one is -1, and the operator's data sets, which the stage has bound there, within it:
    all read-only. Returns the descriptor of a clone that can be written, from outside.

    The mount that came is the service's own, so it stays as it is: what the child sees
    is another, read-only, on top."""
    sets = [(path, os.path.isdir(path), lockdown.clone_mount(path, within=True)) for path in map("/data/".__add__, os.listdir("/data"))]
    if uploads < 0:
        lockdown.mount_tmpfs("/data", mode="755", size=DATA_BYTES, nr_inodes=DATA_INODES)
    else:
        lockdown.attach(uploads, "/data")
    keep = lockdown.clone_mount("/data")
    for path, folder, _ in sets:
        if folder:
            os.makedirs(path, exist_ok=True)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_RDONLY))
    lockdown.attach(lockdown.clone_mount("/data"), "/data")
    for path, _, tree in sets:
        lockdown.attach(tree, path)
    lockdown.read_only("/data")
    return keep


def _text(fd: int) -> io.TextIOWrapper:
    """A text stream written through: what is printed before a kill is seen."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True)


def _reseed() -> None:
    """What must differ between siblings, and was the same in the zygote. Python's own
    random does so by itself after a fork."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and "reseed" not in lockdown.without:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
