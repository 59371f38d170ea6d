"""Finds out whether the memory of an array of numpy or pyarrow can be read.

An array over a mapped file has no memory where the file has shrunk, and a read of it ends the process with SIGBUS. A
file shrinks from its end, so the last page of an array is gone if any page is. madvise with MADV_POPULATE_READ fails
for it instead of raising a signal. It says nothing about a file that shrinks in the microseconds between this check and
a read.
"""

import builtins
import ctypes
import errno
import mmap

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

_GONE = "its memory is gone, because the file that it is mapped from has shrunk or is unmapped"
_UNKNOWN = "only Linux 5.14 and later can tell whether the file that it may be mapped from still has its memory"

_POPULATE_READ = 22  # MADV_POPULATE_READ of linux/mman.h
_PAGE = mmap.PAGESIZE
_madvise = ctypes.PyDLL(None, use_errno=True).madvise  # PyDLL keeps the GIL, so no thread of the program runs meanwhile
_madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_errno = ctypes.get_errno


def problem(array) -> str:
    """Returns why the items of an array, exactly of numpy's class, can't be read; "" if they can."""
    kind = type(array)
    owner, base = array, array.base
    while base is not None and issubclass(type(base), kind):
        owner, base = base, kind.base.__get__(base)
    # Memory that numpy or a bytes object has allocated is not mapped from a file.
    if type(base) is bytes or base is None and kind.flags.__get__(owner).owndata or not array.size:
        return ""
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides)]
    start = array.__array_interface__["data"][0]
    first, last = start + sum(min(step, 0) for step in steps), start + sum(max(step, 0) for step in steps)
    return _problem_at(first) or _problem_at(last + array.itemsize - 1)


def buffers_problem(buffers) -> str:
    """Returns why one of these buffers of pyarrow can't be read; "" if all can. pyarrow maps files by itself, and does
    not tell which buffers it has allocated. So the answer is "" where the system can't tell."""
    for buffer in buffers:
        if buffer is not None and buffer.size and buffer.is_cpu:
            if _problem_at(buffer.address + buffer.size - 1) == _GONE:
                return _GONE
    return ""


def _problem_at(byte: int) -> str:
    if _madvise(byte - byte % _PAGE, _PAGE, _POPULATE_READ):
        return _UNKNOWN if _errno() == errno.EINVAL else _GONE
    return ""
