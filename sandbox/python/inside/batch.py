"""System calls that are prepared beforehand and made one after the other.

The zygote prepares what a child does first. A forked child must copy each page that it
writes to, and Python writes to the reference count of whatever it looks at: a call made from
Python costs more for that than for the call. The extension syscall_batch makes a batch
of them without Python; where it is not built, this module makes them, with the same
outcome.
"""

import array
import ctypes
import errno
import functools
import os
from collections.abc import Callable, Sequence

try:
    import syscall_batch
except ImportError:
    syscall_batch = None

_libc = ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock
_libc.syscall.restype = ctypes.c_long
_CLONE_NEWPID = 0x20000000

# The numbers of the system calls that are used, on x86-64 and ARM64, the architectures that there is a filter for.
_NUMBERS = {
    name: of_each[0 if os.uname().machine == "x86_64" else 1]
    for name, of_each in {
        "read": (0, 63),
        "close": (3, 57),
        "rt_sigprocmask": (14, 135),
        "sendmsg": (46, 211),
        "chdir": (80, 49),
        "getppid": (110, 173),
        "setgroups": (116, 159),
        "setresuid": (117, 147),
        "setresgid": (119, 149),
        "capset": (126, 91),
        "prctl": (157, 167),
        "openat": (257, 56),
        "mkdirat": (258, 34),
        "fchownat": (260, 54),
        "unshare": (272, 97),
        "dup3": (292, 24),
        "prlimit64": (302, 261),
        # The same on every architecture that Linux gained them on (asm-generic).
        **{
            name: (number, number)
            for name, number in {
                "open_tree": 428,
                "move_mount": 429,
                "fsopen": 430,
                "fsconfig": 431,
                "fsmount": 432,
                "close_range": 436,
                "mount_setattr": 442,
                "landlock_create_ruleset": 444,
                "landlock_add_rule": 445,
                "landlock_restrict_self": 446,
            }.items()
        },
    }.items()
}

_STORE, _EXPECT = -1, -2
_WORDS, _REFERENCES, _TOLERATED, _ARGUMENTS, _RESULT = 10, 1, 2, 3, 9


class Step(int):
    """A step of a batch by its index; as an argument of a later one, its result."""


class Slot:
    """A number that is filled in when the batch is ready: set."""

    def __init__(self, batch: "Batch"):
        self._batch = batch
        self._words: list[int] = []
        self._texts: list[ctypes.Array] = []

    def text(self) -> ctypes.Array:
        """It as decimal digits, of a C string."""
        self._texts.append(ctypes.create_string_buffer(24))
        return self._texts[-1]

    def used(self, word: int) -> None:
        self._words.append(word)

    def set(self, value: int) -> None:
        for word in self._words:
            self._batch.words[word] = value
        for text in self._texts:
            text.value = b"%d" % value


Argument = int | bytes | ctypes.Array | ctypes.Structure | Slot | None


class Batch:
    """Calls are added with call, store and expect, in their order. words is what
    syscall_batch takes."""

    def __init__(self) -> None:
        self.words = array.array("q", [-1])
        self._what: list[str] = []
        self._held: list = []  # what addresses among the arguments point to

    def call(self, what: str, name: str, *args: Argument, tolerate: int = 0) -> Step:
        """Adds a system call; what names it where it fails, with an errno other than
        tolerate. bytes are passed by address, and so are buffers."""
        return self._add(what, _NUMBERS[name], args, tolerate)

    def store(self, target: ctypes.Array, offset: int, value: int) -> None:
        """Adds the writing of a result, as 32 bits, into a buffer."""
        self._held.append(target)
        self._add("store", _STORE, (ctypes.addressof(target) + offset, value))

    def expect(self, what: str, value: Step, equal: int, error: int) -> Step:
        """Adds a comparison: where the result is another, the batch fails with error."""
        return self._add(what, _EXPECT, (value, equal, error))

    def _add(self, what: str, number: int, args: Sequence[Argument], tolerate: int = 0) -> Step:
        at = len(self.words)
        self.words.extend([number, 0, tolerate, 0, 0, 0, 0, 0, 0, 0])
        for i, arg in enumerate(args):
            word = at + _ARGUMENTS + i
            if isinstance(arg, Slot):
                arg.used(word)
                continue
            if isinstance(arg, Step):
                self.words[at + _REFERENCES] |= 1 << i
            self.words[word] = self._value(arg)
        self._what.append(what)
        return Step(len(self._what) - 1)

    def _value(self, arg: "int | bytes | ctypes.Array | ctypes.Structure | None") -> int:
        if arg is None:
            return 0
        if isinstance(arg, bytes):
            arg = ctypes.create_string_buffer(arg)
        if isinstance(arg, int):
            return arg
        self._held.append(arg)
        return ctypes.addressof(arg)

    def change(self, step: Step, argument: int, value: int) -> None:
        """Gives another value to an argument of a step."""
        self.words[1 + step * _WORDS + _ARGUMENTS + argument] = value

    def result(self, step: Step) -> int:
        return self.words[1 + step * _WORDS + _RESULT]

    def steps(self) -> int:
        return len(self._what)

    def failed(self) -> int:
        """The step that failed, or -1."""
        return self.words[0]

    def check(self) -> None:
        """Raises OSError where a step failed."""
        step = self.failed()
        if step >= 0:
            number = -self.result(Step(step))
            raise OSError(number, f"{self._what[step]}: {os.strerror(number)}")

    def run(self) -> None:
        """Makes the calls. Raises OSError for the first that fails; none is made after it."""
        _run(self.words)
        self.check()

    def fork(self, home: int, hooks: bool) -> int:
        """Forks, and makes the calls in the child, where check says how it went. home is a
        pidfd of this process, for a child in a pid namespace of its own, or -1. Returns the
        child's pid, and 0 there. hooks has Python's own hooks for a fork run."""
        return fork_slowly(self.words, home) if hooks else _fork(self.words, home)


def run_slowly(words: "array.array") -> None:
    """What syscall_batch.run does."""
    words[0] = -1
    for at in range(1, len(words), _WORDS):
        a = [
            words[1 + words[at + _ARGUMENTS + i] * _WORDS + _RESULT] if words[at + _REFERENCES] >> i & 1 else words[at + _ARGUMENTS + i]
            for i in range(6)
        ]
        result = 0
        if words[at] == _STORE:
            ctypes.c_int32.from_address(a[0]).value = a[1]
        elif words[at] == _EXPECT:
            result = 0 if a[0] == a[1] else -a[2]
        else:
            while True:
                result = _libc.syscall(ctypes.c_long(words[at]), *map(ctypes.c_long, a))
                if result >= 0:
                    break
                result = -ctypes.get_errno()
                if result != -errno.EINTR:
                    break
        words[at + _RESULT] = result
        if result < 0 and result != -words[at + _TOLERATED]:
            words[0] = (at - 1) // _WORDS
            return


def fork_slowly(words: "array.array", home: int, fork: Callable[[], int] = os.fork) -> int:
    """What syscall_batch.fork does, with a fork that may be Python's own."""
    if home >= 0 and _libc.unshare(_CLONE_NEWPID) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    pid = -1
    try:
        pid = fork()
    finally:
        if pid and home >= 0 and _libc.setns(home, _CLONE_NEWPID) < 0:
            os._exit(70)  # there is no way back
    if pid == 0:
        run_slowly(words)
    return pid


def _plain_fork() -> int:
    pid = _libc.fork()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "fork")
    return pid


_run = syscall_batch.run if syscall_batch else run_slowly
_fork = syscall_batch.fork if syscall_batch else functools.partial(fork_slowly, fork=_plain_fork)
