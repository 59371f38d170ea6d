"""Reads the code of notebooks: lines that begin with % or !, and questions such as df.head?.

parse() returns the tree of code. Valid Python is never changed: only if Python's own parser refuses the code, such
lines are replaced, each by Python on the same line. An error, a breakpoint, a recorded step and a finding of a check so
have the line that the user wrote. Code after %time and %timeit also keeps its columns.

A line counts only if a statement can begin there: not in a string, in brackets or after a backslash.
"""

import ast
import builtins
import re

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

SHELL = "get_ipython()"  # what a replaced line calls; notebook.Shell

_compile = compile
_COMMAND = re.compile(r"([ \t\f]*)(%%?(?=[A-Za-z_])|!!?(?=[ \t]*[^\s=!]))[ \t]*(.*)", re.DOTALL)
_ASSIGNMENT = re.compile(r"[ \t\f]*[\w., \t*()\[\]]+=[ \t]*(!|%(?=[a-zA-Z]))")
_QUESTION = re.compile(r"([ \t\f]*)(\?\??[ \t]*([\w.]+)|([\w.]+(?:\[[^\]\n]*\])?)[ \t]*\?\??)[ \t]*;?[ \t]*")
_TOKEN = re.compile(r"#[^\n]*|\"\"\"|'''|[\"'()\[\]{}]|\\(?=[ \t]*\Z)")
_OPTION = re.compile(r"(-[nr])[ \t]*(\d+)(?:[ \t]+|\Z)|-[opqctv]+(?:[ \t]+|\Z)")
_COMPOUND = re.compile(r"(?:async|class|def|for|if|match|try|while|with)\b|@")

# Magics that have no effect here, because a sandbox works as they ask or has nothing that they set.
without_effect = frozenset(
    "aimport alias automagic autoreload autosave colors config load_ext matplotlib notebook precision reload_ext "
    "unload_ext xmode".split()
)
# Magics that notebook.Shell runs.
_LINES = frozenset("cd conda lsmagic ls mamba pinfo pinfo2 pip pwd uv who who_ls whos".split())
_CELLS = frozenset("html javascript js latex markdown svg".split())
_TIMED = frozenset(("time", "timeit"))
# What to use instead of other magics and commands.
_INSTEAD = {
    "bash": "Python: a sandbox starts no processes",
    "cat": "print(pathlib.Path(NAME).read_text())",
    "conda": "%pip, which says what is installed",
    "cp": "pathlib and shutil",
    "curl": "requests, if the sandbox has a network",
    "debug": "a debug session of the service",
    "echo": "print",
    "env": "the run's context",
    "git": "files that are uploaded to /data",
    "head": "pathlib.Path(NAME).read_text().splitlines()[:10]",
    "history": "await get_execution_history()",
    "load": "pathlib.Path(NAME).read_text()",
    "memit": "await get_sandbox_state()",
    "mkdir": "pathlib.Path(NAME).mkdir(parents=True, exist_ok=True)",
    "mv": "pathlib.Path(NAME).rename(NEW_NAME)",
    "pdb": "a debug session of the service",
    "pylab": "import numpy as np and import matplotlib.pyplot as plt",
    "prun": "%time, or %timeit",
    "python": "import of the module, or its code here",
    "python3": "import of the module, or its code here",
    "reset": "a new sandbox, or del for some names",
    "rm": "pathlib.Path(NAME).unlink()",
    "run": "import of the file as a module",
    "script": "Python: a sandbox starts no processes",
    "sh": "Python: a sandbox starts no processes",
    "sql": 'await db_query("...")',
    "store": "files in /session, which stay while the sandbox lives",
    "system": "Python: a sandbox starts no processes",
    "sx": "Python: a sandbox starts no processes",
    "unzip": "zipfile",
    "wget": "requests, if the sandbox has a network",
}


def parse(source: str, filename: str, flags: int):
    """Returns the tree of the code, and the text that was parsed: source unless that has lines of notebooks.

    Raises what compile raises. A command that is not available here is a SyntaxError of its line.
    """
    try:
        return _compile(source, filename, "exec", flags, True), source
    except SyntaxError:
        if "%" not in source and "!" not in source and "?" not in source:
            raise
        code = _Code(source, filename)
        if not code.found:
            raise
    try:
        tree = _compile(code.text, filename, "exec", flags, True)
    except SyntaxError as error:
        if code.problem is not None and (error.lineno or 0) >= (code.problem.lineno or 0):
            raise code.problem from None
        raise
    if code.problem is not None:
        raise code.problem
    return _Timing(code, filename, flags).apply(tree), code.text


def without_commands(source: str) -> str:
    """Returns source as a text for readers of Python: other lines are replaced by Python on the same line."""
    return _Code(source, "").text if "%" in source or "!" in source or "?" in source else source


def hides_value(text: str, tree) -> bool:
    """Tells whether a semicolon follows the last statement of a parsed text, which hides its value in notebooks."""
    last = tree.body[-1]
    if text.rfind(";") < 0:
        return False
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[last.end_lineno - 1 :]
    after = lines[0].encode("utf-8", "replace")[last.end_col_offset :].decode("utf-8", "replace")
    return "\n".join([after, *lines[1:]]).lstrip(" \t\f\\\n").startswith(";")


class _Code:
    """Source with its commands replaced. text has as many lines as source.

    found says whether there are any; problem is the SyntaxError of the first that is not available; timed has the
    magics %time and %timeit by the position of the `if 1:` that replaces them, and cells those of the whole cell.
    """

    def __init__(self, source: str, filename: str):
        self.timed: dict = {}
        self.cells: list = []  # (name, rest, line)
        self.found = False
        self.problem: SyntaxError | None = None
        self._filename = filename
        self._lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._at = 0
        self._bracket_depth, self._quote = 0, ""
        self._is_continued = self._has_code = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if self._bracket_depth or self._quote or self._is_continued or not self._replace(line):
                self._scan(line)
                self._has_code = self._has_code or bool(line.strip()) and not line.lstrip().startswith("#")
            self._at += 1
        self.text = "\n".join(self._lines)

    def _scan(self, line: str) -> None:
        """Follows strings, brackets and backslashes to the end of a line."""
        at = 0
        self._is_continued = False
        while at < len(line):
            if self._quote:
                end = _end_of_string(line, at, self._quote)
                if end < 0:
                    break
                at, self._quote = end, ""
                continue
            token = _TOKEN.search(line, at)
            if token is None:
                break
            at, text = token.end(), token.group()
            if text[0] in "\"'":
                self._quote = text
            elif text in "([{":
                self._bracket_depth += 1
            elif text in ")]}":
                self._bracket_depth = max(self._bracket_depth - 1, 0)
            elif text == "\\":
                self._is_continued = True
        if len(self._quote) == 1 and not (len(line) - len(line.rstrip("\\"))) % 2:
            self._quote = ""  # an error of the user's, which Python names

    def _replace(self, line: str) -> bool:
        """Replaces a line at which a statement can begin if it is not Python."""
        command = _COMMAND.match(line)
        if command is None:
            question = _QUESTION.fullmatch(line)
            if question is not None:
                inspector = "pinfo2" if "??" in line else "pinfo"
                self._call(question[1], "run_line_magic", inspector, question[3] or question[4])
                return True
            if _ASSIGNMENT.match(line):
                self._fail("the output of a command cannot be a value here: use Python", line)
                return True
            return False
        first = self._at
        while line.endswith("\\") and self._at + 1 < len(self._lines):  # a command may have a backslash at its end
            self._at += 1
            line = line[:-1] + " " + self._lines[self._at]
            self._lines[self._at] = ""
        command = _COMMAND.match(line)
        assert command is not None
        indent, kind, rest = command.groups()
        at, self._at = self._at, first
        name, _, arguments = rest.strip().partition(" ")
        if kind[0] == "!":
            self._shell(indent, name, arguments, line)
        elif kind == "%%":
            if self._has_code or indent:
                self._fail(f"%%{name} must be on the first line of the cell", line)
            else:
                self._cell(name, arguments, line)
                return True
        else:
            self._magic(indent, name, arguments, line)
        self._at = at
        self._has_code = True
        return True

    def _shell(self, indent: str, name: str, arguments: str, line: str) -> None:
        words = arguments.split()
        if name in ("python", "python3") and words[:2] == ["-m", "pip"]:
            name, arguments = "pip", " ".join(words[2:])
        if name in ("pip3", "uv", "mamba", "conda"):
            name, arguments = "pip", arguments.removeprefix("pip ")
        if name in ("pip", "ls", "pwd"):
            self._call(indent, "run_line_magic", name, arguments)
            return
        instead = _INSTEAD.get(name, "Python: a sandbox starts no processes")
        self._fail(f"the shell command {name!r} is not available: use {instead}", line)

    def _magic(self, indent: str, name: str, arguments: str, line: str) -> None:
        if name in _TIMED:
            options, begin = _options(line, line.index(name) + len(name))
            if not line[begin:].strip() or line[begin:].lstrip().startswith("#"):
                self._fail(f"%{name} needs a statement on its line", line)
            elif _COMPOUND.match(line, begin):
                self._fail(f"%{name} takes a simple statement: put %%{name} on the first line of the cell", line)
            else:
                self.found = True
                self.timed[self._at + 1, len(indent.encode())] = name, options
                self._lines[self._at] = indent + "if 1:" + " " * (begin - len(indent) - 5) + line[begin:]
        elif name in without_effect or name in _LINES:
            self._call(indent, "run_line_magic", name, arguments)
        elif name == "env" and "=" not in arguments:
            self._fail("%env reads variables of the service, which code cannot see: use the run's context", line)
        else:
            self._fail(_unknown("%", name), line)

    def _cell(self, name: str, arguments: str, line: str) -> None:
        """Replaces a magic of the whole cell."""
        self.found = True
        if name in _CELLS or name == "writefile":
            body = "\n".join(self._lines[self._at + 1 :])
            if name == "writefile":
                self._write(arguments, body)
            else:
                self._call("", "run_cell_magic", name, arguments, body)
            self._lines[self._at + 1 :] = [""] * (len(self._lines) - self._at - 1)
            self._at = len(self._lines)
        elif name in ("time", "timeit", "capture"):
            options, begin = _options(line, line.index(name) + len(name))
            if name == "timeit":
                self._lines[self._at] = "if 1:" + " " * (begin - 5) + (line[begin:].strip() or "pass")
            else:
                self._lines[self._at] = ""
                if name == "time" and arguments.strip():
                    self._fail("%%time takes no statement on its own line: write it on the next line", line)
            self.cells.append((name, arguments if name == "capture" else options, self._at + 1))
        else:
            self._fail(_unknown("%%", name), line)

    def _write(self, arguments: str, body: str) -> None:
        words = arguments.split()
        mode = "a" if words[:1] in (["-a"], ["--append"]) else "w"
        path = " ".join(words[1:] if mode == "a" else words).strip("\"'")
        if not path:
            self._fail("%%writefile needs the name of a file", self._lines[self._at])
            return
        text = body if body.endswith("\n") or not body else body + "\n"
        self._lines[self._at] = f"{SHELL}.write_cell(open({path!r}, {mode!r}), {text!r})"

    def _call(self, indent: str, method: str, *arguments: str) -> None:
        self.found = True
        self._lines[self._at] = f"{indent}{SHELL}.{method}({', '.join(map(repr, arguments))})"

    def _fail(self, message: str, line: str) -> None:
        self.found = True
        number, indent = self._at + 1, line[: len(line) - len(line.lstrip())]
        if self.problem is None:
            place = (self._filename, number, len(indent) + 1, line)
            self.problem = SyntaxError(f"line {number}: {message}", place)
        self._lines[self._at] = indent + "pass"


def _end_of_string(line: str, at: int, quote: str) -> int:
    """Returns the index after the end of a string, or -1 if the line ends before."""
    while at < len(line):
        if line[at] == "\\":
            at += 2
        elif line.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return -1


def _options(line: str, at: int) -> "tuple[dict, int]":
    """Returns the options -n and -r of %timeit, and the index of what follows."""
    options: dict = {}
    while True:
        at += len(line[at:]) - len(line[at:].lstrip())
        option = _OPTION.match(line, at)
        if option is None:
            return options, at
        if option[1]:
            options[option[1][1]] = int(option[2][:9])
        at = option.end()


def _unknown(kind: str, name: str) -> str:
    if name in _INSTEAD:
        return f"{kind}{name} is not available: use {_INSTEAD[name]}"
    return f"{kind}{name} is not a command that is available here: use Python; %lsmagic lists the commands"


class _Timing(ast.NodeTransformer):
    """Applies %time, %timeit and the magics of the cell to the tree of the replaced text."""

    def __init__(self, code: _Code, filename: str, flags: int):
        self._code, self._filename, self._flags = code, filename, flags

    def apply(self, tree):
        if self._code.timed:
            self.visit(tree)
        for name, options, line in reversed(self._code.cells):
            tree.body = self._cell(tree.body, name, options, line)
        ast.fix_missing_locations(tree)
        return tree

    def visit_If(self, node):
        magic = self._code.timed.pop((node.lineno, node.col_offset), None)
        if magic is None:
            return self.generic_visit(node)
        name, options = magic
        body = node.body
        made = self._time(body, node) if name == "time" else self._repeat(body, [], options, node)
        for each in made:
            ast.fix_missing_locations(each)
        return made

    def _cell(self, body: list, name: str, options, line: int) -> list:
        place = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
        if name == "timeit":
            setup = body.pop(0).body
            return self._repeat(body or [place], setup, options, place)
        if name == "time":
            return self._time(body, place)
        return self._capture(body, options.split(), place)

    def _time(self, body: list, place) -> list:
        """Prints how long the statements take. The value of a last expression stays."""
        last = body[-1] if body else None
        if isinstance(last, ast.Expr):
            clocked = _expression(f"{SHELL}.stop_clock(None)", last)
            clocked.args = [last.value]
            last = ast.copy_location(ast.Expr(clocked), last)
            rest = [*body[:-1], last]
        else:
            rest = [*body, _statement(f"{SHELL}.stop_clock()", place)]
        return [_statement(f"{SHELL}.start_clock()", place), *rest]

    def _repeat(self, body: list, setup: list, options: dict, place) -> list:
        """Makes the statements a function that is called often."""
        text = "def __timed__(__turns__):\n for __turn__ in __turns__:\n  pass"
        define, call = _statement(text, place), _statement(f"{SHELL}.repeat(__timed__, {options!r})", place)
        loop = define.body[0]
        loop.body = body
        define.body = [*setup, *_clock_around(loop, place)]
        return [define, call, _statement("del __timed__", place)]

    def _capture(self, body: list, words: list, place) -> list:
        names = [word for word in words if word[:1] != "-"]
        text = f"with {SHELL}.capture({[word for word in words if word[:1] == '-']!r})"
        if names and not names[0].isidentifier():
            raise SyntaxError(
                f"line {place.lineno}: %%capture takes a name, got {names[0]!r}", (self._filename, place.lineno, 1, "")
            )
        block = _statement(text + (f" as {names[0]}" if names else "") + ": pass", place)
        block.body = body or [place]
        return [block]


def _clock_around(loop, place) -> list:
    return [_statement(f"{SHELL}.start_loop()", place), loop, _statement(f"return {SHELL}.stop_loop()", place)]


def _statement(text: str, place):
    if text.startswith("return "):
        return _placed(ast.Return(ast.parse(text[7:], mode="eval").body), place)
    return _placed(ast.parse(text).body[0], place)


def _expression(text: str, place):
    return _placed(ast.parse(text, mode="eval").body, place)


def _placed(tree, place):
    """Gives every node of tree the position of place."""
    for node in ast.walk(tree):
        ast.copy_location(node, place)
    return tree
