"""One sandbox's Python session: a namespace that lasts, and the runs in it.

Code is compiled as a module body that may await at the top level. Code that doesn't
is plainly exec'd; code that does is a task of the session's one event loop, which
stands still between runs. The value of a last expression is the result, unless the
code sets __result__.

User code shares this process and can replace anything in it: what is used after it
has run is bound at import, and what fails then fails this session alone.
"""

import ast
import asyncio
import builtins
import contextvars
import inspect
import io
import json
import keyword
import linecache
import sys
import threading
import types
import warnings

import check
import compat
import complete
import failure
import helpers
import namespace
import nested
import outputs
import place
import processor_pipeline
import recorder_make
import stops
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_VARIABLES = 200  # that look lists
MAX_LOOK = 900_000  # bytes; the host takes 1 MiB
KEPT_SOURCES = 1000  # of earlier runs, for the tracebacks of their functions

_HOME = place.HOME
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_compile, _exec, _eval, _print, _dumps = compile, exec, eval, print, json.dumps
_get_digits, _set_digits = sys.get_int_max_str_digits, sys.set_int_max_str_digits
_code_of = vars(SystemExit)["code"].__get__
_asyncio_run = asyncio.run


class Context(dict):
    """The run's context: a dict whose keys are attributes too (context.data)."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"the context has no {name!r}; it has {sorted(map(str, self))[:20]}", name=name, obj=self)


values.DICTS.add(Context)


class Session:
    """channel is a protocol.Channel. It is made in the zygote, once for all children, so
    that they share its memory; enter makes it the session of one sandbox."""

    def __init__(self, channel):
        self._channel = channel
        self._policy: dict = {}
        self._rules = check.Rules({})
        self._plain = False
        self._runs = 0
        self._thread = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()  # so that what code sets there stays
        self._digits = _get_digits()
        self._streams = sys.stdout, sys.stderr
        self._outputs = outputs.Outputs(channel.output)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self._names = main.__dict__
        self._names.update(namespace.Helpers(channel, self.look, self._outputs.display).names())
        self._names["__builtins__"] = builtins
        self._given = dict(self._names)
        asyncio.run = asyncio.runners.run = nested.run_within(_asyncio_run, self._event_loop)

    def enter(self, policy: dict, rules: dict) -> None:
        """The sandbox's policy, and what check.Rules takes."""
        self._policy = policy
        self._rules = check.Rules(rules)
        self._plain = policy.get("profile") == "compat"
        if self._plain:  # Python as it is without us
            for name, each in helpers.REGISTRY.items():
                if not each.in_compat:
                    self._names.pop(name, None)

    @staticmethod
    def leave_home() -> None:
        """The session's folder is where the user's modules are; ours can't be imported by accident."""
        sys.path[:] = [place.session, *(p for p in sys.path if p not in (place.session, _HOME))]
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(_HOME + "/") and name != "processor_pipeline":
                del sys.modules[name]

    # -- running

    def forget(self) -> None:
        """There has been no run."""
        linecache.cache.pop(f"<execution {self._runs}>", None)
        self._runs = 0
        self._names.pop("context", None)

    def run(self, job: dict) -> dict:
        """Runs job["code"]; returns a sandbox.Outcome. Never raises."""
        self._runs += 1
        filename = f"<execution {self._runs}>"
        channel = self._channel
        outcome: dict = {"result": None, "exception": None, "truncated": {}, "exit": None, "interrupt": False}
        error: BaseException | None = None
        value = None
        try:
            # Within, an interrupt ends what runs: the code, and then what its objects
            # do while they are described.
            try:
                self._begin(job, filename)
                channel.running = True
                try:
                    value = self._do(job, filename)
                except BaseException as raised:
                    error = raised
                self._conclude(outcome, value, error, filename)
            finally:
                channel.running = False
        except BaseException as raised:
            channel.running = False
            kind = type(raised)
            if error is not None and not issubclass(kind, KeyboardInterrupt):
                kind = type(error)
            outcome["interrupt"] = issubclass(kind, KeyboardInterrupt)
            outcome["exception"] = {"type": values.name_of(kind), "message": "", "line": 0, "traceback": []}
        channel.attention = False
        error = value = None  # or the frames of a failure would live on, each holding the other
        self._outputs.close()
        return outcome

    def _begin(self, job: dict, filename: str) -> None:
        self._channel.interrupted = False
        _set_digits(self._digits)
        if sys.stdout is not self._streams[0] or sys.stderr is not self._streams[1] or sys.stdout.closed or sys.stderr.closed:
            self._restore_streams()
        sys.path_importer_cache.pop(place.session, None)  # a module may just have been written there
        linecache.cache.pop(f"<execution {self._runs - KEPT_SOURCES}>", None)
        self._outputs.begin()
        processor_pipeline.begin()
        names = self._names
        names.pop("__result__", None)
        context = Context(job.get("context") or {})
        if not self._plain:
            names["context"] = context
        for name, value in context.items():
            if name.isidentifier() and not keyword.iskeyword(name) and name[:2] != "__":
                names[name] = value

    def _restore_streams(self) -> None:
        """What a run before has put in the place of stdout or stderr, or closed, is not this one's."""
        fresh = []
        for fd, stream in enumerate(self._streams, 1):
            if stream.closed:
                stream = io.TextIOWrapper(
                    io.FileIO(fd, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
                )
            fresh.append(stream)
        self._streams = sys.stdout, sys.stderr = fresh[0], fresh[1]

    def _do(self, job: dict, filename: str):
        """Compiles, checks and runs the code; returns the value of its last expression."""
        code, last = self._compile(compat.source(job["code"]) if self._plain else job["code"], filename)
        if not job.get("watch"):
            return self._execute(code, last)
        watch = recorder_make.make(self._channel, filename, self._names, {*self._given, "context"})
        if job.get("stops") is not None:
            watch.control = stops.Stops(watch, self._channel, self._names, job["stops"])
        watch.start()
        try:
            return self._execute(code, last)
        finally:
            watch.stop()
            if self._channel.take_interrupt():
                raise KeyboardInterrupt

    @staticmethod
    def _parse(source: str, filename: str):
        try:
            if "\0" in source:
                raise SyntaxError("the code has a null byte", (filename, source.count("\n", 0, source.index("\0")) + 1, 1, ""))
            return _compile(source, filename, "exec", _FLAGS | ast.PyCF_ONLY_AST, True)
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise SyntaxError("the code has a lone surrogate, which is no character", (filename, line, 1, "")) from None
        except (RecursionError, MemoryError):
            raise SyntaxError("the code is nested too deep for Python", (filename, 1, 1, "")) from None

    def _compile(self, source: str, filename: str):
        text = source.replace("\r\n", "\n").replace("\r", "\n") + "\n"
        lines = text.replace("\n", "\n\0").split("\0")[:-1]  # with their ends; code has no null byte
        linecache.cache[filename] = (len(source), None, lines, filename)
        if "\n" not in source and "\\" not in source and self._rules.passes(source):  # or a bad escape is warned of twice
            try:  # an expression, as much code is, needs no tree
                return None, _compile(source, filename, "eval", _FLAGS, True)
            except Exception:
                pass  # a statement; or what is wrong is told below
        tree = self._parse(source, filename)
        self._rules.check(source, tree, self._names)
        try:
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = _compile(ast.Expression(tree.body.pop().value), filename, "eval", _FLAGS, True)
            return _compile(tree, filename, "exec", _FLAGS, True) if tree.body else None, last
        except (RecursionError, MemoryError):
            raise SyntaxError("the code is nested too deep for Python", (filename, 1, 1, "")) from None

    def _execute(self, code, last):
        value = self._evaluate(code, last)
        if value is not None or self._plain or "__result__" in self._names:
            return value
        left = processor_pipeline.left(self._names.get("context"))
        return None if left is None else self._wait(left)

    def _evaluate(self, code, last):
        flags = (code.co_flags if code else 0) | (last.co_flags if last else 0)
        if flags & inspect.CO_COROUTINE:
            return self._wait(self._awaiting(code, last))
        if code:
            self._context.run(_exec, code, self._names)
        return self._context.run(_eval, last, self._names) if last else None

    async def _awaiting(self, code, last):
        if code:
            begun = _eval(code, self._names)
            if code.co_flags & inspect.CO_COROUTINE:
                await begun
        if not last:
            return None
        value = _eval(last, self._names)
        return await value if last.co_flags & inspect.CO_COROUTINE else value

    def _event_loop(self):
        if threading.get_ident() != self._thread:
            return None
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        return self._loop

    def _wait(self, coroutine):
        loop = self._event_loop()
        task = loop.create_task(coroutine, context=self._context)
        try:
            return loop.run_until_complete(task)
        finally:
            if not task.done():  # interrupted, or another task has left by sys.exit()
                self._cancel(loop)
            elif not task.cancelled():
                task.exception()  # is told by us, not by the task's end

    def _cancel(self, loop) -> None:
        """Ends the tasks of an interrupted run, so that none goes on in the next."""
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        try:
            _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=0.02))
        except BaseException:
            pending = tasks
        if pending:  # they would not: leave them, and their loop
            self._loop = None

    def _conclude(self, outcome: dict, value, error: "BaseException | None", filename: str) -> None:
        self._digits = _get_digits()
        _set_digits(0)  # the outcome's integers are written whole
        # Not isinstance: it would ask a __class__ of the user's.
        outcome["interrupt"] = issubclass(type(error), KeyboardInterrupt)
        if issubclass(type(error), SystemExit):
            code = _code_of(error)
            outcome["exit"] = _exit_code(code)
            if type(code) is str:
                _print(values.readable(code, len(code)), file=sys.stderr)
        if error is not None and outcome["exit"] != 0:
            outcome["exception"] = failure.describe(error, filename, self._names, self._policy, self._given)
        shown = self._outputs
        try:
            if not outcome["interrupt"]:
                shown.figures()
            if value is not None:
                shown.last(value)
        except KeyboardInterrupt:
            raise
        except BaseException:  # an object that leaves while it is shown
            shown.cut += 1
        if "__result__" in self._names:
            value = self._names["__result__"]
        outcome["result"], cut = values.plain(value)
        for what, n in (("result", cut), ("outputs", shown.cut)):
            if n > 0:
                outcome["truncated"][what] = n

    # -- looking

    def answer(self, question: dict) -> dict:
        """Answers a protocol.Look between runs; an interrupt ends what takes too long."""
        what = {"check": self._check, "complete": self._complete}.get(question.get("what", ""))
        if what is None:
            return self.look()
        try:
            self._channel.running = True
            try:
                with warnings.catch_warnings():  # the code's own are for its run
                    warnings.simplefilter("ignore")
                    return what(question)
            finally:
                self._channel.running = False
        except BaseException as error:
            return {"failed": values.name_of(type(error))}

    def _check(self, question: dict) -> dict:
        """A sandbox.Verdict on code that does not run."""
        source = question["code"]
        problems: list = []
        try:
            tree = self._parse(source, "<code>")
            problems += self._rules.findings(source, tree, self._names, self._policy.get("environment", "default"))
            _compile(tree, "<code>", "exec", _FLAGS, True)  # some errors are only found now
        except SyntaxError as error:
            told = failure.describe(error, "<code>", self._names, self._policy)
            problems.append({"kind": "syntax", **{key: told[key] for key in ("line", "column", "message", "hint") if key in told}})
        except (RecursionError, MemoryError):
            problems.append({"kind": "syntax", "line": 1, "message": "the code is nested too deep for Python"})
        return {"problems": problems}

    def _complete(self, question: dict) -> dict:
        names = self._names if self._plain else {**dict.fromkeys(helpers.REGISTRY), **self._names}
        found = complete.complete(question["code"], question["cursor"], names, self._rules.allows)
        if not found["settled"]:  # what ran before helps who reads the text alone
            earlier = [linecache.cache.get(f"<execution {n}>") for n in range(max(self._runs - 20, 1), self._runs + 1)]
            found["before"] = "\n".join("".join(kept[2]) for kept in earlier if kept is not None and len(kept) == 4)[-20_000:]
        return found

    def look(self) -> dict:
        """A sandbox.Variables: a bounded picture that runs no code of the user's."""
        shown: dict = {}
        total = 0
        for name, value in list(self._names.items()):
            if name[:1] == "_" or name == "context" or self._given.get(name, self) is value or type(value) is types.ModuleType:
                continue
            total += 1
            if len(shown) >= MAX_VARIABLES:
                continue
            entry: dict = {"type": values.type_name(value), "repr": values.preview(value, 300)}
            size = values.shape(value)
            if size is not None:
                entry["shape"] = size
            shown[values.readable(name, 100)] = entry
        public = [values.readable(name, 100) for name in list(self._names) if name[:1] != "_"][:1000]
        picture = {"variables": shown, "globals": public, "total": total}
        while len(_dumps(picture)) > MAX_LOOK and shown:
            for name in list(shown)[len(shown) // 2 :]:
                del shown[name]
            del public[len(public) // 2 :]
        return picture


def _exit_code(code) -> int:
    """What the process would have left with."""
    if code is None:
        return 0
    return int.__and__(code, 0xFF) if issubclass(type(code), int) else 1
