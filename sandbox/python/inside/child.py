"""A child's life: lock down on Enter, then do what the host sends.

What can be made before the fork is made in the zygote, by Child: each page that a
child writes to must be copied first, so the less it does, the faster it is and the
less memory it has of its own.
"""

import errno
import io
import os
import random
import signal
import sys
import threading

import hatch
import lockdown
import network
import place
import session
from batch import Batch, Slot, Step

TMP_BYTES, INODES = 64 << 20, 16384
DATA_BYTES, DATA_INODES = 2 << 30, 1 << 18  # the service, which alone writes there, holds a sandbox to less
_GO = hatch.frame(hatch.ENTER, b"")  # to one that knows already how to lock down
_KEPT_BIRTHS = 8
_REHEARSED = rb"""{"execution_id": "", "code": "print('', end='')\n0", "context": {}}"""  # a sandbox.hatch.Run


class Birth:
    """What a child does before it comes to Python: the batch, and what is filled in for
    each child."""

    def __init__(self) -> None:
        self.batch = Batch()
        self.hatch, self.out, self.err, self.uid = (Slot(self.batch) for _ in range(4))
        self.arrived = 0  # so many steps come before it has its descriptors
        self.go: Step | None = None  # the host's word that it may; None: it is told later how


class Child:
    """What all children of a zygote have in common. filters are seccomp programs by
    name; readable is what Landlock lets them read; policy and rules are those of most
    sandboxes; private are mounts and namespaces of their own."""

    def __init__(self, filters: "dict[str, bytes]", readable: "list[str]", policy: dict, rules: dict, private: bool):
        self._filters = {name: lockdown.Filter(program) for name, program in filters.items()}
        self._readable = readable
        self._private = private
        self._parent = 0 if private and "pid" not in lockdown.without else os.getpid()
        self._abi = lockdown.landlock_abi()
        self._births: dict[bytes, Birth] = {}
        os.umask(0o022)
        sys.stdin = open(0)
        sys.stdout, sys.stderr = _text(1), _text(2)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        self._channel = hatch.Channel(lockdown.HATCH)
        self._session = session.Session(self._channel)
        self._session.enter(policy, rules)
        signal.signal(signal.SIGINT, self._channel.on_interrupt)
        signal.signal(signal.SIGUSR1, self._channel.on_attention)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
        network.explain()
        lockdown.before_fork()
        self._session.leave_home()

    def birth(self, told: bytes) -> Birth:
        """The Birth of a child that locks itself down as is told, in JSON; b"": that comes
        later, over the hatch."""
        birth = self._births.get(told)
        if birth is None:
            while len(self._births) >= _KEPT_BIRTHS:
                del self._births[next(iter(self._births))]
            birth = self._births[told] = self._prepare(hatch.loads(told) if told else None)
        return birth

    def _prepare(self, enter: "dict | None") -> Birth:
        birth = Birth()
        batch = birth.batch
        lockdown.arrive(batch, birth.hatch, birth.out, birth.err, self._private)
        birth.arrived = batch.steps()
        if enter:
            birth.go = batch.call("the host's word", "read", lockdown.HATCH, bytes(len(_GO)), len(_GO))
            batch.expect("the host's word", birth.go, len(_GO), errno.EPIPE)
            keep = self._lock(batch, {**enter, "uid": birth.uid if enter["uid"] else 0}, [])
            lockdown.tell(batch, hatch.frame(hatch.READY, hatch.pack({"error": ""})), keep)
        return birth

    def live(self, birth: Birth) -> None:
        """Never returns. The birth's batch has been made, or has failed; raises OSError
        where it failed so early that there is no hatch."""
        channel, live = self._channel, self._session
        failed = birth.batch.failed()
        if failed < birth.arrived:
            birth.batch.check()
        if birth.go is not None and failed in (birth.go, birth.go + 1):
            os._exit(0)  # nobody wants it any more
        try:
            birth.batch.check()
            if birth.go is None:
                self._enter()
        except Exception as error:
            channel.send(hatch.READY, {"error": f"{type(error).__name__}: {error}"})
            os._exit(72)
        _differ()
        hatch.pack(live.rehearse(hatch.loads(_REHEARSED)))
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

    def _enter(self) -> None:
        """Is told how to lock down, and does."""
        kind, body = self._channel.receive_with_descriptors()
        if kind != hatch.ENTER:
            os._exit(0)
        enter, fds = hatch.loads(body), self._channel.take_descriptors()
        if enter["folder"]:
            place.settle(enter["folder"])
        batch = Batch()
        keep = self._lock(batch, enter, fds)
        lockdown.tell(batch, hatch.frame(hatch.READY, hatch.pack({"error": ""})), keep)
        batch.run()

    def _lock(self, batch: Batch, enter: dict, fds: "list[int]") -> "list[int | Step]":
        """Adds the lockdown; returns the descriptors that go with Ready: clones of the /session
        and /data mounts, where they are any, and the listener of a network of its own."""
        uid, folder, own = enter["uid"], enter["folder"], enter.get("network")
        keep: list[int | Step] = [] if folder else self._mount(batch, enter, fds, uid)
        batch.call("chdir", "chdir", place.session.encode())
        if own:
            keep.append(network.switch_on(own["host"], own["port"], own["environment"]))
        ruleset = None
        if enter["landlock"]:
            readable = [*self._readable, folder + "/data"] if folder else self._readable
            ruleset = lockdown.landlock_ruleset(batch, self._abi, readable, [place.session, place.tmp], own["port"] if own else 0)
        lockdown.lock(batch, uid, self._parent, ruleset, self._filters.get(enter["filter"]))
        return keep

    def _mount(self, batch: Batch, enter: dict, fds: "list[int]", uid: "int | Slot") -> "list[int | Step]":
        lockdown.mount_tmpfs(batch, "/tmp", mode="1777", **lockdown.bounds(TMP_BYTES, INODES))
        if enter["attach"]:
            lockdown.attach(batch, fds[0], "/session")
        else:
            lockdown.mount_tmpfs(batch, "/session", mode="700", uid=uid, gid=uid, **lockdown.bounds(enter["workspace"], INODES))
            lockdown.make_dir(batch, "/session/artifacts", uid)
        return [lockdown.clone_mount(batch, "/session"), _mount_data(batch, fds[1] if len(fds) > 1 else -1)]


def _mount_data(batch: Batch, uploads: int) -> Step:
    """Puts the sandbox's uploads at /data, a fresh file system where the descriptor of
    one is -1, and the operator's data sets, which the stage has bound there, within it:
    all read-only. Returns the descriptor of a clone that can be written, from outside.

    The mount that came is the service's own, so it stays as it is: what the child sees
    is another, read-only, on top."""
    paths = ["/data/" + name for name in os.listdir("/data")]
    trees = [lockdown.clone_mount(batch, path, within=True) for path in paths]
    if uploads < 0:
        lockdown.mount_tmpfs(batch, "/data", mode="755", size=DATA_BYTES, nr_inodes=DATA_INODES)
    else:
        lockdown.attach(batch, uploads, "/data")
    keep = lockdown.clone_mount(batch, "/data")
    for path in paths:
        (lockdown.make_dir if os.path.isdir(path) else lockdown.make_file)(batch, path)
    lockdown.attach(batch, lockdown.clone_mount(batch, "/data"), "/data")
    for path, tree in zip(paths, trees):
        lockdown.attach(batch, tree, path)
    lockdown.read_only(batch, "/data")
    return keep


def _text(fd: int) -> io.TextIOWrapper:
    """A text stream written through: what is printed before a kill is seen."""
    return io.TextIOWrapper(io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True)


def _differ() -> None:
    """What must differ between siblings, and was the same in the zygote. Python's own
    hooks for a fork, which the zygote's goes without, would do the first and the last."""
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
    if "reseed" in lockdown.without:
        return
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))
    random.seed()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
