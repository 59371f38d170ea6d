"""The main loop of a guest: it locks itself down on Enter and then serves the frames of the supervisor.

Guest does as much work as possible in the zygote, before the fork. A child copies each page that it writes to, so a
child that does less starts faster and needs less memory of its own.
"""

import errno
import os
import random
import signal
import socket
import sys
import threading

import directories
import fork_server
import lockdown
import network
import protocol
import session
import syscalls
from syscalls import Batch, Step, given

TMP_BYTES, INODES = 64 << 20, 16384
DATA_BYTES, DATA_INODES = 2 << 30, 1 << 18  # only the service writes to /data, and it enforces lower limits
_GO = protocol.encode_frame(protocol.ENTER, b"")  # for a guest that got its Enter before the fork
# Operations that most code needs. They leave no names in the session.
_REHEARSAL = {
    "code": "import time\nfor n in [n for n in (0,)]:\n    print(end=f'{n!r}'[:0])\ndel n, time",
    "context": {},
}
_WARM_UP_RUNS = 20  # after which the interpreter has specialised the code
_IDLE = 20  # milliseconds without a frame after which a guest rehearses
_EXIT_FAILED = 72  # exit status of a guest that could not lock down


# Bound here: a child that looks up names, modules and methods would copy their pages.
_MAIN, _native_id, _urandom, _modules = threading.main_thread(), threading.get_native_id, os.urandom, sys.modules
_seed = super(random.Random, random._inst).seed  # of the generator behind the functions of random
_ENDS, _UID = (given(0), given(1), given(2)), given(3)  # the connection, stdout and stderr; the uid


class StartUp:
    """The system calls that a child makes before it runs Python: a batch."""

    def __init__(self) -> None:
        self.batch = Batch()
        self.descriptor_steps = 0  # the first steps; after them the connection is open
        # The step that reads the supervisor's Enter frame without a body; None if an Enter frame with a body will come.
        self.go: Step | None = None


class Guest:
    """The state that all children of a zygote have in common.

    filters has seccomp programs by name, readable has the paths that Landlock lets guests read, policy and rules are
    those of most sandboxes. private says that guests have their own mounts and namespaces.
    """

    def __init__(self, filters: "dict[str, bytes]", readable: "list[str]", policy: dict, rules: dict, private: bool):
        self._filters = {name: lockdown.Filter(program) for name, program in filters.items()}
        self._readable = readable
        self._private = private
        self._parent = 0 if private and "pid" not in lockdown.without else os.getpid()
        self._abi = lockdown.landlock_abi()
        self._start_ups: list[StartUp] = []
        self.batches: fork_server.Batches = []  # of the start-ups
        os.umask(0o022)
        sys.stdin = open(0)
        sys.stdout, sys.stderr = session.text_stream(1), session.text_stream(2)
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
        self._channel = protocol.Channel(lockdown.CONNECTION)
        self._session = session.Session(self._channel)
        self._session.enter(policy, rules)
        signal.signal(signal.SIGINT, self._channel.on_interrupt)
        signal.signal(signal.SIGUSR1, self._channel.on_attention)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past file_max_bytes raises OSError instead
        network.explain_refusals()
        lockdown.drop_before_fork()
        self._session.hide_own_modules()
        self._warm_up()

    def prepare(self, enter: "dict | None") -> None:
        """Adds the start-up of a guest that locks itself down as enter says, or, if enter is None, as its Enter frame
        will say."""
        start_up = StartUp()
        batch = start_up.batch
        start_up.descriptor_steps = lockdown.take_descriptors(batch, *_ENDS, self._private)
        if enter:
            start_up.go = batch.call("the supervisor's go", "read", lockdown.CONNECTION, bytes(len(_GO)), len(_GO))
            batch.expect("the supervisor's go", start_up.go, len(_GO), errno.EPIPE)
            self._lock_down(batch, {**enter, "uid": _UID if enter["uid"] else 0}, [])
        self._start_ups.append(start_up)
        self.batches.append(batch.words)

    def live(self, index: int) -> None:
        """Serves the supervisor after the batch of this start-up has run. Never returns.

        It raises OSError if the batch failed so early that there is no connection.
        """
        channel, start_up = self._channel, self._start_ups[index]
        failed = start_up.batch.failed()
        if failed < start_up.descriptor_steps:
            start_up.batch.check()
        if start_up.go is not None and failed in (start_up.go, start_up.go + 1):
            os._exit(0)  # the supervisor has closed the connection: it does not need this guest
        try:
            start_up.batch.check()
            if start_up.go is None:
                self._enter()
        except Exception as error:
            channel.send(protocol.READY, {"error": f"{type(error).__name__}: {error}"})
            os._exit(_EXIT_FAILED)
        _reseed()
        if not channel.wait(_IDLE):
            self._rehearse()
        while self._serve(channel):
            pass
        os._exit(0)

    def _rehearse(self) -> None:
        """Runs a small program and discards its result. This copies the pages that most runs write to in idle time."""
        frame = protocol.encode_frame(protocol.RUN, protocol.encode(_REHEARSAL))
        self._serve(protocol.RehearsalChannel(frame))
        self._session.forget_runs()

    def _serve(self, channel: protocol.Channel) -> bool:
        """Handles the next frame. Returns False for a frame of an unexpected kind."""
        kind, body = channel.receive_with_descriptors()
        live = self._session
        if kind == protocol.RUN:
            outcome = live.run(protocol.decode(body))
            for fd in channel.take_descriptors():  # of a run that ended before its recorder began
                os.close(fd)
            _flush()
            names = ("exception", "truncated", "interrupt", "compile_ms")
            parts = {name: outcome[name] for name in names if outcome[name]}
            channel.send(protocol.DONE, {"result": outcome["result"], **parts})
        elif kind == protocol.ASSIGN:
            assigned = protocol.decode(body)
            for number, value in assigned.get("limits", {}).items():
                lockdown.set_limit(int(number), value)
            if "policy" in assigned:
                live.enter(assigned["policy"], assigned["rules"])
        elif kind == protocol.INSPECT:
            channel.send(protocol.VALUE, live.answer(protocol.decode(body)))
        elif kind == protocol.COPIES:
            if syscalls.syscall_batch:
                syscalls.syscall_batch.give_back(body)
            channel.send(protocol.VALUE, {})
        else:
            return False
        return True

    def _warm_up(self) -> None:
        """Executes a guest's code in the zygote, so that code is specialised and caches are filled before the fork and
        not in each guest."""
        random.seed()  # forgets the value that gauss has kept
        ours, theirs = socket.socketpair()
        channel = protocol.Channel(theirs.detach())
        for _ in range(_WARM_UP_RUNS):
            _reseed()
            channel.wait(0)
            self._rehearse()
            for kind, value in ((protocol.ASSIGN, {}), (protocol.RUN, _REHEARSAL)):
                ours.sendall(protocol.encode_frame(kind, protocol.encode(value)))
                self._serve(channel)
            ours.recv(1 << 16)
            self._session.forget_runs()
        ours.close()
        channel.close()

    def _enter(self) -> None:
        """Receives an Enter frame and locks down as it says."""
        kind, body = self._channel.receive_with_descriptors()
        if kind != protocol.ENTER:
            os._exit(0)
        enter, fds = protocol.decode(body), self._channel.take_descriptors()
        if enter["folder"]:
            directories.use(enter["folder"])
        batch = Batch()
        self._lock_down(batch, enter, fds)
        batch.run()

    def _lock_down(self, batch: Batch, enter: dict, fds: "list[int]") -> None:
        """Adds the lockdown, and then Ready with its descriptors.

        These are a clone of the mounts of its files, if the guest has its own, and the listener of its own network.
        """
        uid, folder, own = enter["uid"], enter["folder"], enter.get("network")
        listeners = [network.switch_on(own, fds.pop() if own.get("sysctls") else -1)] if own else []
        rights: list[int | Step] = [] if folder else self._mount(batch, enter, fds, uid)
        rights += listeners
        batch.call("chdir", "chdir", directories.session.encode())
        ruleset = None
        if enter["landlock"]:
            readable = [*self._readable, folder + "/data"] if folder else self._readable
            writable = [directories.session, directories.tmp]
            ruleset = lockdown.landlock_ruleset(batch, self._abi, readable, writable, own["port"] if own else 0)
        lockdown.lock(batch, uid, self._parent, ruleset, self._filters.get(enter["filter"]))
        ready = protocol.encode_frame(protocol.READY, protocol.encode({"error": ""}))
        lockdown.send_and_close(batch, ready, rights)

    def _mount(self, batch: Batch, enter: dict, fds: "list[int]", uid: int) -> "list[int | Step]":
        """Mounts /tmp, /session and /data, and in it the operator's data sets, all of /data read-only.

        The files of a session are one tree of mounts: a file system with the uploads in its directory files, and the
        session mounted at its directory session. Returns the descriptor of a writable clone of the tree, by which the
        service keeps the files for the next guest. The data sets are bound at /data before.
        """
        lockdown.mount_tmpfs(batch, "/tmp", mode="1777", **lockdown.quota(TMP_BYTES, INODES))
        names = os.listdir("/data")
        sets = [lockdown.clone_mount(batch, "/data/" + name, within=True) for name in names]
        kinds = [os.path.isdir("/data/" + name) for name in names]
        if enter["attach"] == "files":
            lockdown.attach(batch, fds[0], "/data")
        else:
            lockdown.mount_tmpfs(batch, "/data", mode="755", size=DATA_BYTES, nr_inodes=DATA_INODES)
            lockdown.make_dir(batch, "/data/files")
            lockdown.make_dir(batch, "/data/session")
            if enter["attach"] == "session":
                lockdown.attach(batch, fds[0], "/data/session")
            else:
                quota = lockdown.quota(enter["workspace"], INODES)
                lockdown.mount_tmpfs(batch, "/data/session", mode="700", uid=uid, gid=uid, **quota)
                lockdown.make_dir(batch, "/data/session/artifacts", uid)
        files = lockdown.clone_mount(batch, "/data", within=True)
        lockdown.attach(batch, lockdown.clone_mount(batch, "/data/session"), "/session")
        for name, is_folder in zip(names, kinds):
            (lockdown.make_dir if is_folder else lockdown.make_file)(batch, "/data/files/" + name)
        lockdown.attach(batch, lockdown.clone_mount(batch, "/data/files"), "/data")
        for name, tree in zip(names, sets):
            lockdown.attach(batch, tree, "/data/" + name)
        lockdown.make_read_only(batch, "/data")
        return [files]


def _reseed() -> None:
    """Sets the values that must differ between guests but are equal after a fork: the thread's id and the random seeds.

    The zygote forks without Python's fork hooks, which would do this.
    """
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
