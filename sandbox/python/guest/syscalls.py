"""Batches of prepared system calls, which run one after the other.

The zygote prepares the first system calls of a child. A forked child copies each page that it writes to, and Python
writes to the reference count of every object that it uses, so for a system call from Python the copies take longer than
the call. The extension syscall_batch makes the calls of a batch without Python. If the extension is not built, this
module makes them with the same results.
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
ABI_VERSION = 10  # of the interface between the extension and this module: syscall_batch/module.c has the same number
if getattr(syscall_batch, "ABI_VERSION", 0) != ABI_VERSION:  # it was built for another version of Glasshouse
    syscall_batch = None

_libc = ctypes.PyDLL(None, use_errno=True)  # PyDLL keeps the GIL
_libc.syscall.restype = ctypes.c_long

# The numbers of system calls on x86-64 and on ARM64: there are seccomp filters for these architectures.
_NUMBERS = {
    "read": (0, 63),
    "close": (3, 57),
    "rt_sigprocmask": (14, 135),
    "getpid": (39, 172),
    "clone": (56, 220),
    "sendto": (44, 206),
    "chdir": (80, 49),
    "getppid": (110, 173),
    "setgroups": (116, 159),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "capset": (126, 91),
    "prctl": (157, 167),
    "openat": (257, 56),
    "dup3": (292, 24),
    "prlimit64": (302, 261),
    "seccomp": (317, 277),
    "close_range": (436, 436),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
IS_X86 = os.uname().machine == "x86_64"


def number(syscall: str) -> int:
    """Returns the number of a system call on this architecture."""
    return _NUMBERS[syscall][0 if IS_X86 else 1]


def _find_own_id() -> int:
    """Returns the address at which the C library keeps the id of this thread, or 0 if the kernel does not say it."""
    found = ctypes.c_long(0)
    _libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(found), 0, 0, 0)
    return found.value


_PR_GET_TID_ADDRESS = 40
own_id = _find_own_id()  # before the filter of the zygote, which refuses this call

_STORE, _EXPECT = -1, -2  # operations that are not the number of a system call
_STEP_WORDS, _REFERENCES, _ARGUMENTS, _RESULT = 9, 1, 2, 8  # the layout of a step: batch.c


class Step(int):
    """The index of a step. A later step uses it as an argument to refer to the result of this step."""


def given(n: int) -> Step:
    """Returns an argument that refers to the nth of the four numbers that the batch gets when it runs."""
    return Step(-1 - n)


Argument = int | bytes | ctypes.Array | ctypes.Structure | None


class Batch:
    """A batch of steps, in the order in which they were added. words is its memory, in the format of syscall_batch."""

    def __init__(self) -> None:
        self.words = array.array("q", [-1])
        self._names: list[str] = []  # of the steps, for errors
        self._buffers: list = []  # whose addresses are among the arguments

    def call(self, name: str, syscall: str, *args: Argument) -> Step:
        """Adds a system call. bytes and buffers are passed by address. The error of a failure begins with name."""
        return self._add(name, number(syscall), args)

    def store(self, target: ctypes.Array, offset: int, value: int) -> None:
        """Adds a step that writes a result as 32 bits into a buffer."""
        self._buffers.append(target)
        self._add("store", _STORE, (ctypes.addressof(target) + offset, value))

    def expect(self, name: str, value: Step, equal: int, error: int) -> Step:
        """Adds a comparison of a result with equal. If they differ, the batch fails with this errno."""
        return self._add(name, _EXPECT, (value, equal, error))

    def _add(self, name: str, number: int, args: Sequence[Argument]) -> Step:
        at = len(self.words)
        self.words.extend([number, 0, 0, 0, 0, 0, 0, 0, 0])
        for i, arg in enumerate(args):
            if isinstance(arg, Step):
                self.words[at + _REFERENCES] |= 1 << i
            self.words[at + _ARGUMENTS + i] = self._value(arg)
        self._names.append(name)
        return Step(len(self._names) - 1)

    def _value(self, arg: Argument) -> int:
        if arg is None:
            return 0
        if isinstance(arg, bytes):
            arg = ctypes.create_string_buffer(arg)
        if isinstance(arg, int):
            return arg
        self._buffers.append(arg)
        return ctypes.addressof(arg)

    def result(self, step: Step) -> int:
        return self.words[1 + step * _STEP_WORDS + _RESULT]

    def steps(self) -> int:
        return len(self._names)

    def failed(self) -> int:
        """Returns the index of the step that failed, or -1."""
        return self.words[0]

    def check(self) -> None:
        """Raises OSError if a step failed."""
        step = self.failed()
        if step >= 0:
            number = -self.result(Step(step))
            raise OSError(number, f"{self._names[step]}: {os.strerror(number)}")

    def run(self, *given: int) -> None:
        """Makes the calls, and raises OSError for the first that fails. No call is made after it."""
        run(self.words, *given)
        self.check()


def run_in_python(words: "array.array", *given: int) -> None:
    """Does the same as syscall_batch.run."""
    words[0] = -1
    for at in range(1, len(words), _STEP_WORDS):
        a = list(words[at + _ARGUMENTS : at + _RESULT])
        for i, n in enumerate(a):
            if words[at + _REFERENCES] >> i & 1:
                a[i] = given[-1 - n] if n < 0 else words[1 + n * _STEP_WORDS + _RESULT]
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
        if result < 0:
            words[0] = (at - 1) // _STEP_WORDS
            return


run = syscall_batch.run if syscall_batch else run_in_python
