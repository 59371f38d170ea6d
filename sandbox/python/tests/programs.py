"""Case files of programs, and the interpreters on this machine that can run them."""

import atexit
import base64
import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import recording

HERE = pathlib.Path(__file__).parent
VERSIONS = ("3.11", "3.12", "3.13")
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"  # of this Python


def interpreters() -> "dict[str, str]":
    """Returns one Python for each version, this one first, from the path or from pyenv."""
    found = {version: next(iter(candidates(version)), "") for version in (OWN, *VERSIONS)}
    return {version: python for version, python in found.items() if python}


def candidates(version: str) -> "list[str]":
    """Returns the Pythons of a version that run: this one, then those of the path and of pyenv."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    local = sorted(str(p) for p in pyenv.glob(f"versions/{version}.*/bin/python"))
    there = [sys.executable] if version == OWN else []
    for python in filter(None, (shutil.which(f"python{version}"), *local)):
        if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            there.append(python)
    return there


def load(name: str) -> "dict[str, dict]":
    """Returns the programs of a case file by name: {"code", "steps", "steps 3.11", "records"}."""
    out = {}
    for part in re.split(r"(?m)^== ", (HERE / name).read_text())[1:]:
        title, _, rest = part.partition("\n")
        sections = re.split(r"(?m)^-- ", rest)
        out[title] = {"code": sections[0]}
        for section in sections[1:]:
            head, _, body = section.partition("\n")
            out[title][head] = body.strip("\n")
    return out


# Warnings that a CPython extension can't avoid: unused parameters of methods, and {NULL} at the end of tables.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]


def compiler(name: str, python: str) -> "tuple[list[str], str]":
    """Returns the command that compiles an extension for a Python, without its output, and the suffix of the file."""
    ask = "import sysconfig; print(sysconfig.get_paths()['include'], sysconfig.get_config_var('EXT_SUFFIX'))"
    include, suffix = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    sources = sorted(map(str, (HERE.parent / "ext" / name).glob("*.c")))
    return [os.environ.get("CC", "gcc"), f"-I{include}", *sources], suffix


@functools.cache
def extension(name: str, python: str) -> pathlib.Path:
    """Returns the file of an extension for a Python: the installed one if its source is the same, else a new build."""
    sources = sorted((HERE.parent / "ext" / name).iterdir())
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]  # as in scripts/setup
    installed = importlib.util.find_spec(name) if python == sys.executable else None
    if installed is not None and installed.origin is not None:
        key_file = pathlib.Path(installed.origin).with_name(f"{name}.key")
        if key_file.exists() and key_file.read_text().strip() == key:
            return pathlib.Path(installed.origin)
    folder = tempfile.mkdtemp(prefix=name)
    atexit.register(shutil.rmtree, folder)
    command, suffix = compiler(name, python)
    target = pathlib.Path(folder, name + suffix)
    flags = ["-O2", "-flto", "-fvisibility=hidden", "-shared", "-fPIC", *WARNINGS]
    subprocess.run([*command, *flags, "-o", str(target)], check=True, timeout=600)  # only ends a compiler that hangs
    return target


def record(python: str, cases: list, path: str = "") -> list:
    """Returns the results of each case without and with a recorder: the extension, if path is its folder."""
    recordings = Recordings(python, dict(enumerate(cases)), path)
    try:
        return [recordings[number] for number in range(len(cases))]
    finally:
        recordings.close()


class Recordings:
    """The results of cases, by their keys: each without and with a recorder, the extension if path is its folder.

    A case runs when a test first asks for it, in a process that the cases share. A process that ends or hangs fails
    this test only: the next one gets a new process, and runs the case again.
    """

    timeout = 300.0  # seconds for a case; it only ends a program that hangs

    def __init__(self, python: str, cases: dict, path: str = "") -> None:
        self._command, self._path = [python, str(HERE / "record.py")], path
        self._cases, self._results = cases, {}
        self._process: subprocess.Popen | None = None

    def __getitem__(self, key):
        if key not in self._results:
            plain, watched = self._run({**self._cases[key], "fast": bool(self._path)})
            watched["reader"] = recording.Reader(base64.b64decode(watched["records"]))
            self._results[key] = plain, watched
        return self._results[key]

    def close(self) -> None:
        """Ends the process. Results that are there stay."""
        atexit.unregister(self.close)
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._errors.close()
            self._process = None

    def _run(self, case: dict) -> list:
        process = self._process or self._start()
        hangs = threading.Timer(self.timeout, process.kill)
        hangs.start()
        try:
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:  # an earlier program left something that has ended the process
            answer = ""
        finally:
            hangs.cancel()
        if answer.endswith("\n"):
            return json.loads(answer)
        status = process.wait()
        self._errors.seek(0)
        errors = self._errors.read()[-5000:]
        self.close()
        raise AssertionError(
            f"the recorder's process ended with status {status} (-9 after {self.timeout:g} s) and wrote: {errors}"
        )

    def _start(self) -> subprocess.Popen:
        self._errors = tempfile.TemporaryFile("w+", errors="replace")
        environment = {**os.environ, "PYTHONPATH": self._path, "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
        )
        atexit.register(self.close)
        return self._process


COMPREHENSIONS = re.compile(r"<(list|set|dict)comp>(\.|$)")


def folded(steps: list) -> str:
    """Returns steps in the notation of the case files.

    The steps of a list, set or dict comprehension belong to the function that it is in. Python 3.11 runs it as a
    function of its own.
    """
    items, function = [], None
    for name, line in steps:
        name = COMPREHENSIONS.sub("", name).removesuffix(".<locals>.").removesuffix(".") or "<module>"
        items.append(str(line) if name == function else f"{name}:{line}")
        function = name
    return " ".join(fold(items))


def fold(items: list) -> list:
    """Folds repetitions, shortest first, as (...)*n."""
    for size in range(1, len(items) // 2 + 1):
        i, out = 0, []
        while i < len(items):
            n = 1
            while items[i : i + size] == items[i + n * size : i + (n + 1) * size] != []:
                n += 1
            if n > 2 and i + size <= len(items):
                out.append(f"({' '.join(items[i : i + size])})*{n}")
                i += n * size
            else:
                out.append(items[i])
                i += 1
        items = out
    return items
