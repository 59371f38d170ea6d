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
import inputs
import lockdown
import network
import protocol
import session
import syscalls
from syscalls import Batch, Step, given

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
_MAIN, _native_id, _urandom = threading.main_thread(), threading.get_native_id, os.urandom
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
        inputs.exempt_imports()
        self._session.hide_own_modules()
        self._warm_up()

    def prepare(self, birth: dict) -> None:
        """Adds the start-up of a guest that locks itself down as birth["enter"] says, or, if that is None, as its Enter
        frame will say."""
        start_up = StartUp()
        batch, enter = start_up.batch, birth["enter"]
        start_up.descriptor_steps = lockdown.take_descriptors(batch, *_ENDS, self._private)
        if enter:
            start_up.go = batch.call("the supervisor's go", "read", lockdown.CONNECTION, bytes(len(_GO)), len(_GO))
            batch.expect("the supervisor's go", start_up.go, len(_GO), errno.EPIPE)
            self._lock_down(batch, {**enter, "uid": _UID if enter["uid"] else 0})
        self._start_ups.append(start_up)
        self.batches.append((lockdown.namespaces(birth["network"]) if self._private else 0, batch.words))

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
        """Runs a small program and discards its result. This copies the pages that most runs write to in idle time.

        It leaves the generators of random numbers with a seed that nobody knows, as _reseed does.
        """
        rehearsal = {**_REHEARSAL, "inputs": {"seed": _urandom(32).hex()}, "rehearsal": True}
        frame = protocol.encode_frame(protocol.RUN, protocol.encode(rehearsal))
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
            if "clock" in outcome:
                parts["clock"] = outcome["clock"]
                for name in ("clock_missing", "threads"):
                    if outcome[name]:
                        parts[name] = outcome[name]
            for optional in ("facts", "cell"):
                if optional in outcome:
                    parts[optional] = outcome[optional]
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
        enter = protocol.decode(body)
        if enter["folder"]:
            directories.use(enter["folder"])
        if "network" in enter:
            network.switch_on(enter["network"]["environment"])
        batch = Batch()
        self._lock_down(batch, enter)
        batch.run()

    def _lock_down(self, batch: Batch, enter: dict) -> None:
        """Adds the lockdown, and then Ready."""
        folder = enter["folder"]
        ruleset = None
        if enter["landlock"]:
            readable = [*self._readable, folder + "/data"] if folder else self._readable
            writable = [directories.session, directories.tmp]
            port = enter["network"]["port"] if "network" in enter else 0
            ruleset = lockdown.landlock_ruleset(batch, self._abi, readable, writable, port)
        program = self._filters.get(enter["filter"])
        lockdown.lock(batch, enter["uid"], self._parent, self._private, directories.session, ruleset, program)
        ready = protocol.encode_frame(protocol.READY, protocol.encode({"error": ""}))
        lockdown.send(batch, ready)


def _reseed() -> None:
    """Sets the values that must differ between guests but are equal after a fork: the thread's id, the time of its
    start and the random seeds.

    The zygote forks without Python's fork hooks, which would do this.
    """
    _MAIN._native_id = _native_id()  # type: ignore[attr-defined]
    inputs.note_start()
    inputs.seed_generators()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # user code may have replaced or closed it
