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
import socket
import sys
import threading

import lockdown
import network
import nursery
import place
import protocol
import session
from batch import Batch, Step, given

TMP_BYTES, INODES = 64 << 20, 16384
DATA_BYTES, DATA_INODES = 2 << 30, 1 << 18  # the service, which alone writes there, holds a sandbox to less
_GO = protocol.frame(protocol.ENTER, b"")  # to one that knows already how to lock down
# What most code does, and nothing that is seen afterwards.
_REHEARSAL = {"code": "import time\nfor n in [n for n in (0,)]:\n    print(end=f'{n!r}'[:0])\ndel n, time", "context": {}}
_PRACTICE = 20  # times after which the interpreter has specialised what it runs
_IDLE = 20  # milliseconds after which a child that nobody wanted yet rehearses


# Bound here, as a child looks at little more: names, modules and methods are pages.
_MAIN, _native_id, _urandom, _modules = threading.main_thread(), threading.get_native_id, os.urandom, sys.modules
_seed = super(random.Random, random._inst).seed  # that the module's functions have
_ENDS, _UID = (given(0), given(1), given(2)), given(3)  # the hatch, stdout and stderr; the uid


class Birth:
    """What a child does before it comes to Python: the batch."""

    def __init__(self) -> None:
        self.batch = Batch()
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
        self._births: list[Birth] = []
        self.batches: nursery.Births = []  # theirs
        os.umask(0o022)
        sys.stdin = open(0)
        sys.stdout, sys.stderr = _text(1), _text(2)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        self._channel = protocol.Channel(lockdown.HATCH)
        self._session = session.Session(self._channel)
        self._session.enter(policy, rules)
        signal.signal(signal.SIGINT, self._channel.on_interrupt)
        signal.signal(signal.SIGUSR1, self._channel.on_attention)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
        network.explain()
        lockdown.before_fork()
        self._session.leave_home()
        self._practise()

    def prepare(self, enter: "dict | None") -> None:
        """Adds the Birth of a child that locks itself down as enter says; None: that comes later,
        over the hatch."""
        birth = Birth()
        batch = birth.batch
        lockdown.arrive(batch, *_ENDS, self._private)
        birth.arrived = batch.steps()
        if enter:
            birth.go = batch.call("the host's word", "read", lockdown.HATCH, bytes(len(_GO)), len(_GO))
            batch.expect("the host's word", birth.go, len(_GO), errno.EPIPE)
            keep = self._lock(batch, {**enter, "uid": _UID if enter["uid"] else 0}, [])
            lockdown.tell(batch, protocol.frame(protocol.READY, protocol.pack({"error": ""})), keep)
        self._births.append(birth)
        self.batches.append(batch.words)

    def live(self, number: int) -> None:
        """Never returns. The batch of this number has been made, or has failed; raises OSError
        where it failed so early that there is no hatch."""
        channel, birth = self._channel, self._births[number]
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
            channel.send(protocol.READY, {"error": f"{type(error).__name__}: {error}"})
            os._exit(72)
        _differ()
        if not channel.waits(_IDLE):
            self._rehearse()
        while self._serve(channel):
            pass
        os._exit(0)

    def _rehearse(self) -> None:
        """Goes the way of a run, and leaves no trace of it: the pages that most runs write to,
        with an import, a loop and a print, are copied before somebody waits for that."""
        self._serve(protocol.Unheard(protocol.frame(protocol.RUN, protocol.pack(_REHEARSAL))))
        self._session.forget()

    def _serve(self, channel: protocol.Channel) -> bool:
        """Does what the next frame asks for; False where that is nothing."""
        kind, body = channel.receive_with_descriptors()
        live = self._session
        if kind == protocol.RUN:
            outcome = live.run(protocol.loads(body))
            for fd in channel.take_descriptors():  # it never came to be recorded
                os.close(fd)
            _flush()
            told = {what: outcome[what] for what in ("exception", "truncated", "interrupt") if outcome[what]}
            channel.send(protocol.DONE, {"result": outcome["result"], **told})
        elif kind == protocol.ASSIGN:
            assigned = protocol.loads(body)
            for number, most in assigned.get("limits", {}).items():
                lockdown.limit(int(number), most)
            if "policy" in assigned:
                live.enter(assigned["policy"], assigned["rules"])
        elif kind == protocol.LOOK:
            channel.send(protocol.VALUE, live.answer(protocol.loads(body)))
        else:
            return False
        return True

    def _practise(self) -> None:
        """Goes a child's way here: code that is specialised and caches that are filled are
        not written to in each child."""
        random.seed()  # forgets what gauss kept, once for all
        ours, theirs = socket.socketpair()
        channel = protocol.Channel(theirs.detach())
        for _ in range(_PRACTICE):
            _differ()
            channel.waits(0)
            self._rehearse()
            for kind, value in ((protocol.ASSIGN, {}), (protocol.RUN, _REHEARSAL)):
                ours.sendall(protocol.frame(kind, protocol.pack(value)))
                self._serve(channel)
            ours.recv(1 << 16)
            self._session.forget()
        ours.close()
        channel.close()

    def _enter(self) -> None:
        """Is told how to lock down, and does."""
        kind, body = self._channel.receive_with_descriptors()
        if kind != protocol.ENTER:
            os._exit(0)
        enter, fds = protocol.loads(body), self._channel.take_descriptors()
        if enter["folder"]:
            place.settle(enter["folder"])
        batch = Batch()
        keep = self._lock(batch, enter, fds)
        lockdown.tell(batch, protocol.frame(protocol.READY, protocol.pack({"error": ""})), keep)
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

    def _mount(self, batch: Batch, enter: dict, fds: "list[int]", uid: int) -> "list[int | Step]":
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
    _MAIN._native_id = _native_id()  # type: ignore[attr-defined]
    if "reseed" not in lockdown.without:
        numpy = _modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(int.from_bytes(_urandom(4), "little"))
        _seed()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
