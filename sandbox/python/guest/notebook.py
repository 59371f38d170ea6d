"""The object that get_ipython() returns in a sandbox: what notebooks use of IPython's shell.

notebook_code translates the lines of a notebook that are not Python to calls of its methods, and programs that were
exported from a notebook call them as well.
"""

import builtins
import io
import os
import re
import resource
import statistics
import sys
import time
import types

import missing_modules
import notebook_code
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_NAMES = 200  # that %who lists
MAX_DOCUMENTATION = 10_000  # characters
LOOP_SECONDS = 0.02  # that one loop of %timeit takes at least
REPEAT_SECONDS = 5  # after which %timeit begins no other loop
MAX_REPEATS = 7

_print, _clock = print, time.perf_counter
_CELL_TYPES = {
    "html": "text/html",
    "javascript": "application/javascript",
    "js": "application/javascript",
    "latex": "text/latex",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
}
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?[ ]*(.*)")


class Shell:
    """What notebooks use of IPython's shell: run_line_magic, run_cell_magic, user_ns, and events that never come.

    The methods after those serve notebook_code. names returns the variables that the user has made, run runs code in
    the session, show adds a bundle as an output, and outputs are those of the run.
    """

    config: dict = {}

    def __init__(self, user_ns: dict, outputs, run, names, environment):
        self.user_ns = user_ns
        self._outputs, self._run, self._names, self._environment = outputs, run, names, environment
        self._clocks: list = []
        self._loop = 0.0
        self.events = types.SimpleNamespace(register=_nothing, unregister=_nothing)

    def run_line_magic(self, name: str, line: str, _stack_depth: int = 1):
        """Runs a line such as %pip install pandas, without its percent sign."""
        line = line.strip()
        command = getattr(self, "_line_" + name, None) if name.isidentifier() else None
        if command is not None:
            return command(line)
        if name in notebook_code.without_effect:
            return None
        return self._run(f"%{name} {line}".rstrip())

    def run_cell_magic(self, name: str, line: str, cell: str):
        """Runs a cell under a magic such as %%time."""
        if name in _CELL_TYPES:
            self._outputs.display({_CELL_TYPES[name]: cell}, raw=True)
            return None
        return self._run(f"%%{name} {line}".rstrip() + "\n" + cell)

    def magic(self, line: str):
        """Runs a line magic in one string."""
        name, _, rest = line.strip().lstrip("%").partition(" ")
        return self.run_line_magic(name, rest)

    def system(self, line: str):
        """Runs a shell line, of which only pip, ls and pwd are available."""
        return self._run("!" + line)

    getoutput = system

    # -- what notebook_code calls

    def start_clock(self) -> None:
        self._clocks.append((_clock(), _used()))

    def stop_clock(self, value=None):
        """Prints the time since start_clock, and returns value."""
        begin, before = self._clocks.pop() if self._clocks else (_clock(), _used())
        wall, after = _clock() - begin, _used()
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        _print(f"CPU times: user {_duration(user)}, sys: {_duration(system)}, total: {_duration(user + system)}")
        _print(f"Wall time: {_duration(wall)}")
        return value

    def start_loop(self) -> None:
        self._loop = _clock()

    def stop_loop(self) -> float:
        return _clock() - self._loop

    def repeat(self, timed, options: dict) -> None:
        """Prints how long one turn of timed(turns) takes, as %timeit does, in less time: a run has a time limit."""
        loops = max(options.get("n", 0), 0)
        if not loops:
            loops = 1
            while timed(range(loops)) < LOOP_SECONDS and loops < 10_000_000:
                loops *= 10
        begin, times = _clock(), []
        for _ in range(max(options.get("r", MAX_REPEATS), 1)):
            times.append(timed(range(loops)) / loops)
            if "r" not in options and _clock() - begin > REPEAT_SECONDS:
                break
        deviation = statistics.pstdev(times)
        _print(
            f"{_duration(statistics.fmean(times))} ± {_duration(deviation)} per loop (mean ± std. dev. of "
            f"{len(times)} run{'s' * (len(times) > 1)}, {loops:,} loop{'s' * (loops > 1)} each)"
        )

    def capture(self, options: list):
        """Returns a context that keeps what its statements print and show."""
        return _Capture(self._outputs, "--no-stdout" in options, "--no-stderr" in options)

    @staticmethod
    def write_cell(file, text: str) -> None:
        """Writes a cell to an open file, and closes it."""
        with file:
            is_new = file.mode == "w"
            file.write(text)
        _print(f"{'Writing' if is_new else 'Appending to'} {file.name}")

    # -- line magics

    @staticmethod
    def _line_pwd(_line: str) -> str:
        return os.getcwd()

    @staticmethod
    def _line_cd(line: str) -> None:
        os.chdir(os.path.expanduser(line.strip("\"'") or "~"))
        _print(os.getcwd())

    @staticmethod
    def _line_ls(line: str) -> None:
        folders = [word for word in line.split() if word[:1] != "-"] or ["."]
        for folder in folders:
            if not os.path.exists(folder):
                raise FileNotFoundError(2, "No such file or directory", folder)
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else [folder]
            if len(folders) > 1:
                _print(folder + ":")
            for name in names:
                if name[:1] != ".":
                    _print(name + "/" * os.path.isdir(os.path.join(folder, name)))

    def _line_who(self, line: str) -> None:
        names = self._line_who_ls(line)
        _print("\t ".join(names) if names else "There are no variables.")

    def _line_who_ls(self, line: str) -> list:
        kinds = line.split()
        found = self._names()
        return [name for name in sorted(found) if not kinds or values.name_of(type(found[name])) in kinds][:MAX_NAMES]

    def _line_whos(self, _line: str) -> None:
        found = self._names()
        for name in sorted(found)[:MAX_NAMES]:
            _print(f"{name:<16} {values.name_of(type(found[name])):<16} {values.preview(found[name], 80)}")

    @staticmethod
    def _line_lsmagic(_line: str) -> None:
        lines = "cd ls lsmagic pip pwd time timeit who who_ls whos".split()
        cells = "capture html latex markdown svg time timeit writefile".split()
        _print("Lines:", *("%" + name for name in lines))
        _print("Cells:", *("%%" + name for name in cells))
        _print("Without effect:", *("%" + name for name in sorted(notebook_code.without_effect)))

    def _line_pinfo2(self, line: str) -> None:
        """Prints what an object is, and its source, for `name??`."""
        self._line_pinfo(line, with_source=True)

    def _line_pinfo(self, line: str, with_source: bool = False) -> None:
        """Prints what an object is, for `name?`."""
        try:
            value = eval(line, self.user_ns)  # noqa: S307 - the user's own expression
        except Exception:
            _print(f"Object `{line}` not found.")
            return
        import inspect

        try:
            _print(f"Signature: {line}{inspect.signature(value)}")
        except (TypeError, ValueError):
            _print(f"Value:     {values.safe_repr(value, 1000)}")
        _print(f"Type:      {values.type_name(value)}")
        _print(values.readable("Docstring: " + (inspect.getdoc(value) or "none"), MAX_DOCUMENTATION))
        if with_source:
            try:
                _print(values.readable("Source:\n" + inspect.getsource(value), MAX_DOCUMENTATION))
            except Exception:
                pass  # it is not code, or not Python's

    def _line_pip(self, line: str) -> None:
        """Answers pip's commands: which packages are there, and how an operator adds one."""
        command, *words = line.split() or ["help"]
        words = [word.strip("\"'") for word in words]
        import importlib.metadata

        installed: dict = {}
        for each in importlib.metadata.distributions():
            name = each.metadata["Name"]
            installed.setdefault(_folded(name), (name, each.version))
        if command in ("list", "freeze"):
            for name, version in sorted(installed.values(), key=lambda each: each[0].lower()):
                _print(f"{name}=={version}")
            return
        if command not in ("install", "show", "download", "add"):
            _print(f"pip {command} is not available: the operator manages the packages. %pip list shows them.")
            return
        is_file = False
        for word in words:
            if is_file:
                words = [*words, *_requirements(word)]
            is_file = word in ("-r", "--requirement")
        given = [word for n, word in enumerate(words) if word[:1] != "-" and words[n - 1 : n] not in (["-r"], ["-i"])]
        for word in given:
            self._answer_pip(word, installed)
        if not given:
            _print("pip needs the name of a package; %pip list shows which there are.")

    def _answer_pip(self, word: str, installed: dict) -> None:
        requirement = _REQUIREMENT.match(word)
        if requirement is None or "/" in word:
            _print(f"{word} cannot be installed: the operator manages the packages. %pip list shows them.")
            return
        name, wanted = requirement[1], requirement[2].split(";")[0].strip()
        package = missing_modules.PACKAGES.get(name, name)
        folded = _folded(name) if _folded(name) in installed else _folded(package)
        if folded in installed:
            found, version = installed[folded]
            note = f" ({wanted} was asked for)" if wanted and wanted != "==" + version else ""
            _print(f"{found} {version} is installed already{note}.")
        elif name in sys.stdlib_module_names:
            _print(f"{name} is part of Python: import it.")
        else:
            environment = self._environment()
            option = "" if environment == "default" else f"--env {environment} "
            _print(
                f"{name} is not installed in the environment {environment!r}, and a sandbox cannot install packages: "
                f"ask the operator to add it with `glasshouse env add {option}{package}`."
            )


class _Capture:
    """What statements print and show, for %%capture: stdout and stderr as text, outputs as bundles, show() and a call
    show them."""

    def __init__(self, outputs, keeps_stdout: bool, keeps_stderr: bool):
        self._outputs = outputs
        self._streams = {
            "stdout": None if keeps_stdout else io.StringIO(),
            "stderr": None if keeps_stderr else io.StringIO(),
        }
        self._previous: dict = {}
        self.outputs: list = []

    @property
    def stdout(self) -> str:
        return self._streams["stdout"].getvalue() if self._streams["stdout"] else ""

    @property
    def stderr(self) -> str:
        return self._streams["stderr"].getvalue() if self._streams["stderr"] else ""

    def show(self) -> None:
        """Prints and shows all again."""
        _print(self.stdout, end="")
        _print(self.stderr, end="", file=sys.stderr)
        for bundle in self.outputs:
            self._outputs.display(bundle, raw=True)

    __call__ = show

    def __str__(self) -> str:
        return self.stdout

    def __enter__(self):
        self._outputs.figures()  # those of the statements before
        self._outer, self._outputs.captured = self._outputs.captured, self.outputs
        for name, stream in self._streams.items():
            if stream is not None:
                self._previous[name] = getattr(sys, name)
                setattr(sys, name, stream)
        return self

    def __exit__(self, *_error) -> None:
        try:
            self._outputs.figures()
        finally:
            self._outputs.captured = self._outer
            for name, stream in self._previous.items():
                setattr(sys, name, stream)


def _used():
    return resource.getrusage(resource.RUSAGE_SELF)


def _nothing(*_arguments, **_options) -> None:
    pass


def _folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name or "").lower()


def _requirements(path: str) -> list:
    """Returns the requirements in a file."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file.read(100_000).splitlines()]
    return [line for line in lines if line and line[0] != "-"]


def _duration(seconds: float) -> str:
    """Returns a duration with three digits, as IPython writes it."""
    if seconds >= 60:
        return f"{int(seconds // 60)}min {seconds % 60:.0f}s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
