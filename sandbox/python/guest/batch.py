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
import os
from collections.abc import Sequence

try:
    import syscall_batch
except ImportError:
    syscall_batch = None
FORM = 5  # of what the extension and this have of each other; syscall_batch.c has the same
if getattr(syscall_batch, "FORM", 0) != FORM:  # another version of Glasshouse has built it
    syscall_batch = None

_libc = ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock
_libc.syscall.restype = ctypes.c_long

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

_STORE, _EXPECT, _WRITE = -1, -2, -3
_WORDS, _REFERENCES, _TOLERATED, _ARGUMENTS, _RESULT = 10, 1, 2, 3, 9


class Step(int):
    """A step of a batch by its index; as an argument of a later one, its result."""


def given(n: int) -> Step:
    """What the batch is given when it is made, the nth of four numbers, as an argument."""
    return Step(-1 - n)


Argument = int | bytes | ctypes.Array | ctypes.Structure | None


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

    def digits(self, value: int) -> ctypes.Array:
        """Adds the writing of a number as decimal digits; returns the C string that it will be."""
        text = ctypes.create_string_buffer(24)
        self._add("digits", _WRITE, (text, value))
        return text

    def expect(self, what: str, value: Step, equal: int, error: int) -> Step:
        """Adds a comparison: where the result is another, the batch fails with error."""
        return self._add(what, _EXPECT, (value, equal, error))

    def _add(self, what: str, number: int, args: Sequence[Argument], tolerate: int = 0) -> Step:
        at = len(self.words)
        self.words.extend([number, 0, tolerate, 0, 0, 0, 0, 0, 0, 0])
        for i, arg in enumerate(args):
            if isinstance(arg, Step):
                self.words[at + _REFERENCES] |= 1 << i
            self.words[at + _ARGUMENTS + i] = self._value(arg)
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

    def run(self, *given: int) -> None:
        """Makes the calls. Raises OSError for the first that fails; none is made after it."""
        run(self.words, *given)
        self.check()


def run_slowly(words: "array.array", *given: int) -> None:
    """What syscall_batch.run does."""
    words[0] = -1
    for at in range(1, len(words), _WORDS):
        a = list(words[at + _ARGUMENTS : at + _RESULT])
        for i, n in enumerate(a):
            if words[at + _REFERENCES] >> i & 1:
                a[i] = given[-1 - n] if n < 0 else words[1 + n * _WORDS + _RESULT]
        result = 0
        if words[at] == _STORE:
            ctypes.c_int32.from_address(a[0]).value = a[1]
        elif words[at] == _EXPECT:
            result = 0 if a[0] == a[1] else -a[2]
        elif words[at] == _WRITE:
            ctypes.memmove(a[0], b"%d\0" % a[1], len(b"%d\0" % a[1]))
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


run = syscall_batch.run if syscall_batch else run_slowly
