"""The clocks, the randomness and the times of files of a run, which are logged, so that the run can be repeated.

The extension syscall_batch replaces the functions of the C library in the thread of a run: syscall_batch/inputs.c. If
it is not preloaded, the inputs of a run are those of any process.
"""

import binascii
import builtins
import importlib._bootstrap_external as _import_system
import os
import random
import sys

import lockdown
import syscalls

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

# Bound here: a child that looks up names, modules and methods would copy their pages.
_urandom, _stat, _modules, _to_int = os.urandom, os.stat, sys.modules, int.from_bytes
_from_hex, _from_base64, _to_base64 = binascii.a2b_hex, binascii.a2b_base64, binascii.b2a_base64
_seed = super(random.Random, random._inst).seed  # of the generator behind the functions of random

_extension = syscalls.syscall_batch
is_available = _extension is not None and bool(_extension.HAS_INPUTS)


class Pause:
    """A context in which this thread has the clocks and the randomness of any process.

    It is for code that a recorded run has and others have not: a run can be repeated with a recorder.
    """

    def __enter__(self) -> None:
        self._was_active = is_available and _pause()

    def __exit__(self, *_error) -> None:
        if self._was_active:
            _resume(True)


class Inputs:
    """Begins and ends the inputs of the runs of a session."""

    def __init__(self) -> None:
        self.is_seeded = False  # the generators have the seed of an earlier run

    def begin(self, given: dict) -> None:
        """Begins the inputs of a run. given is a protocol.Inputs."""
        if not is_available:
            return
        seed, clock = _from_hex(given["seed"]), given.get("clock")
        _begin(seed, None if clock is None else _from_base64(clock))
        if seed and not self.is_seeded:
            self.is_seeded = True
            seed_generators()

    @staticmethod
    def end(outcome: dict) -> None:
        """Ends the inputs of a run, and puts the log of its clocks and the number of its threads into the outcome, if
        there is memory for the log."""
        if not is_available:
            return
        try:
            (clock, missing), threads = _end(), _started_threads()
            text = _to_base64(clock, newline=False).decode("ascii")
        except MemoryError:  # the variables of the code fill it, and its result is still due
            return
        outcome["clock"], outcome["clock_missing"], outcome["threads"] = text, missing, threads


if is_available:
    _begin, _end = _extension.begin_inputs, _extension.end_inputs
    _pause, _resume = _extension.pause_inputs, _extension.resume_inputs
    _started_threads = _extension.started_threads


def note_start() -> None:
    """Notes that a guest starts. The times of files that change from now on are inputs of its runs."""
    if is_available:
        _extension.note_start()


def exempt_imports() -> None:
    """Makes imports read the real times of files.

    Each import asks for those of the session directory, and how many modules a run imports depends on the zygote.
    """
    if is_available:
        _import_system._path_stat = _path_stat  # type: ignore[attr-defined]


def _path_stat(path):
    was_active = _pause()
    try:
        return _stat(path)
    finally:
        _resume(was_active)


def seed_generators() -> None:
    """Gives the generators of random and numpy.random new seeds. All guests of a zygote have inherited the same.

    It draws the same number of bytes with and without numpy, so that a repeated run has the same bytes after it.
    """
    if "reseed" in lockdown.without:
        return
    numpy, numpy_seed = _modules.get("numpy"), _urandom(4)
    if numpy is not None:
        numpy.random.seed(_to_int(numpy_seed, "little"))
    _seed(_to_int(_urandom(32), "little"))  # without an argument it draws and mixes 2496 bytes
