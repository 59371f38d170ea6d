"""The Python session of one sandbox: a persistent namespace, and the runs in it.

Code is compiled as a module body that may await at its top level. Code that does not await is passed to exec. Code that
awaits becomes a task of the session's one event loop, which does not run between runs. The result is __result__, or
else the value of a last expression.

User code shares this process and can replace anything in it. So this module binds the functions that it uses after user
code has run when it is imported. If one of them fails anyway, only this session fails.
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
import os
import sys
import threading
import time
import types
import warnings

import cell_trace
import class_sources
import code_rules
import compat
import completion
import debug_control
import directories
import exception_report
import fact_probes
import helpers
import incomplete_code
import inputs
import json_values
import late_output
import lookup
import namespace
import nested_asyncio
import notebook
import notebook_code
import outputs
import processor_pipeline
import recorder_factory
import recorder_source
import table_rows
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_VARIABLES = 200  # that variables() lists
MAX_VARIABLES_BYTES = 900_000  # of the answer; the supervisor takes 1 MiB
KEPT_SOURCES = 1000  # of earlier runs, for the tracebacks of their functions

_OWN = directories.OWN
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_compile, _exec, _eval, _print, _dumps = compile, exec, eval, print, json.dumps
_chdir, _getcwd, _join = os.chdir, os.getcwd, os.path.join
_clock = time.perf_counter_ns
_all_tasks = asyncio.all_tasks
_get_digits, _set_digits = sys.get_int_max_str_digits, sys.set_int_max_str_digits
_code_of = vars(SystemExit)["code"].__get__
_TOO_DEEP = "the code is nested too deeply for Python's compiler: split it"


class Context(dict):
    """The context of a run: a dict whose keys are also attributes (context.data)."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"the context has no {name!r}; it has {sorted(map(str, self))[:20]}", name=name, obj=self)


values.DICTS.add(Context)


def _no_debugger(*_arguments, **_options) -> None:
    """breakpoint() in a run that no debugger can stop; pdb would read commands from a terminal."""
    print("breakpoint() has no effect: it stops only in a debug session", file=sys.stderr)


def _no_terminal(_prompt: object = "", /) -> str:
    """input() in a sandbox."""
    raise RuntimeError("input() is not available: nobody can answer while the code runs; write the value into the code")


class Session:
    """A session over channel, a protocol.Channel.

    The zygote makes it once for all guests, so that they share its memory. enter() assigns it to one sandbox.
    """

    def __init__(self, channel):
        self._channel = channel
        self._policy: dict = {}
        self._rules = code_rules.Rules({})
        self._is_compat = False
        self._runs = 0
        self._thread = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()  # context variables that code sets stay set
        self._digits = _get_digits()
        self._streams = sys.stdout, sys.stderr
        self._late = late_output.LateOutput(channel)
        self._outputs = outputs.Outputs(channel.output)
        self._tables = table_rows.Tables()
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self._names = main.__dict__
        shell = notebook.Shell(
            self._names,
            self._outputs,
            self._run_nested,
            self._user_variables,
            lambda: str(self._policy.get("environment", "default")),
        )
        self._outputs.shell = shell
        self._inputs = inputs.Inputs()
        self._probes: fact_probes.Probes | None = None
        self._trace: cell_trace.Trace | None = None
        self._outputs.provide_ipython()
        self._names.update(namespace.Helpers(channel, self.variables, self._outputs.display, shell).names())
        self._names["__builtins__"] = builtins
        self._initial_names = dict(self._names)
        builtins.input = _no_terminal
        self._namespace = ""  # of the current run
        self._namespaces = {"": main}
        self._folders: dict[str, str] = {}  # working directories of the namespaces that do not run
        nested_asyncio.provide(self._event_loop)
        class_sources.provide()

    def enter(self, policy: dict, rules: dict) -> None:
        """Makes this the session of a sandbox with this policy and these code rules (code_rules.Rules)."""
        self._policy = policy
        self._rules = code_rules.Rules(rules)
        self._is_compat = policy.get("profile") == "compat"
        self._outputs.is_notebook = policy.get("profile") == "notebook"
        if self._is_compat:
            for name, each in helpers.REGISTRY.items():
                if not each.in_compat:
                    self._names.pop(name, None)
                    self._initial_names.pop(name, None)

    @staticmethod
    def hide_own_modules() -> None:
        """Puts the session directory on the path, and hides the guest's modules, so that user code does not import them
        by accident."""
        sys.path[:] = [directories.session, *(p for p in sys.path if p not in (directories.session, _OWN))]
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(_OWN + "/") and name != "processor_pipeline":
                del sys.modules[name]

    # -- running

    def forget_runs(self) -> None:
        """Restores the state before the first run, so that a rehearsal leaves no names."""
        linecache.cache.pop(f"<execution {self._runs}>", None)
        self._runs = 0
        self._inputs.is_seeded = False
        self._names.pop("context", None)

    def run(self, job: dict) -> dict:
        """Runs job["code"] and returns a sandbox.Outcome. It never raises."""
        self._runs += 1
        filename = f"<execution {self._runs}>"
        channel = self._channel
        outcome: dict = {"result": None, "exception": None, "truncated": {}, "exit": None, "interrupt": False}
        self._compile_ms = 0.0
        error: BaseException | None = None
        value = None
        environ = job.get("environ")
        if environ:
            environ = _set_environ(environ)
        try:
            # From here an interrupt ends user code: the code itself, or methods of its objects in the description.
            try:
                self._prepare_run(job)
                channel.running = True
                try:
                    value = self._run_code(job, filename)
                except BaseException as raised:
                    error = raised
                self._describe_outcome(outcome, value, error, filename)
            finally:
                channel.running = False
        except BaseException as raised:
            channel.running = False
            kind = type(raised)
            if error is not None and not issubclass(kind, KeyboardInterrupt):
                kind = type(error)
            outcome["interrupt"] = issubclass(kind, KeyboardInterrupt)
            outcome["exception"] = {"type": values.name_of(kind), "message": "", "line": 0, "traceback": []}
        self._keep_tables(job, value)
        outcome["compile_ms"] = self._compile_ms
        if self._probes is not None:
            outcome["facts"], self._probes = self._probes.end(), None
        if self._trace is not None:
            outcome["cell"], self._trace = self._trace.end(self._names), None
        if job.get("inputs"):
            self._inputs.end(outcome)
        if not job.get("rehearsal"):  # a pause that comes meanwhile is for the first run
            channel.attention = False
        self._late.end_run(self._streams)
        channel.end_run()
        error = value = None  # otherwise the frames of a failure would form a cycle and stay alive
        self._outputs.close()
        if environ:
            _set_environ(environ)
        return outcome

    def _keep_tables(self, job: dict, value) -> None:
        """Lets people look at the rows of the tables of a run until they are gone."""
        try:
            self._tables.keep(job.get("execution_id") or "", self._outputs.tables, value)
        except Exception:
            pass  # user code has replaced a part of pandas

    def _enter_namespace(self, job: dict) -> None:
        """Selects the variables and the working directory of a run. All namespaces share the process's modules."""
        name = job.get("namespace") or ""
        try:
            current = _getcwd()
        except OSError:  # the code has removed it
            current = ""
        self._folders[self._namespace] = current
        for forgotten in job.get("forget") or ():
            self._namespaces.pop(forgotten, None)
            self._folders.pop(forgotten, None)
        main = self._namespaces.get(name)
        if main is None:
            main = self._namespaces[name] = types.ModuleType("__main__")
            main.__dict__.update(self._initial_names)
            self._folders[name] = _join(directories.session, job.get("folder") or "")
        sys.modules["__main__"] = main
        self._namespace, self._names = name, main.__dict__
        folder = self._folders.get(name) or directories.session
        if folder != current:
            try:
                _chdir(folder)
            except OSError:
                _chdir(directories.session)

    def _prepare_run(self, job: dict) -> None:
        self._channel.begin_run(bool(job.get("ordered")))
        if job.get("namespace") or job.get("forget") or self._namespace:
            self._enter_namespace(job)
        _set_digits(self._digits)
        if (
            sys.stdout is not self._streams[0]
            or sys.stderr is not self._streams[1]
            or sys.stdout.closed
            or sys.stderr.closed
        ):
            self._restore_streams()
        self._late.begin_run(job.get("execution_id") or "", self._streams)
        sys.path_importer_cache.pop(directories.session, None)  # user code or the service may have written a module
        linecache.cache.pop(f"<execution {self._runs - KEPT_SOURCES}>", None)
        self._outputs.begin()
        self._tables.forget()
        processor_pipeline.begin_run()
        names = self._names
        names.pop("__result__", None)
        names.pop("__warningregistry__", None)  # a warning is shown once in each run, not once in a session
        context = Context(job.get("context") or {})
        if not self._is_compat:
            names["context"] = context
        for name, value in context.items():
            if name.isidentifier() and not keyword.iskeyword(name) and name[:2] != "__":
                names[name] = value

    def _restore_streams(self) -> None:
        """Undoes a run that has replaced or closed stdout or stderr."""
        streams = [text_stream(fd) if stream.closed else stream for fd, stream in enumerate(self._streams, 1)]
        self._streams = sys.stdout, sys.stderr = streams[0], streams[1]

    def _run_code(self, job: dict, filename: str):
        """Compiles, checks and runs the code, and returns the value of its last expression."""
        source = compat.extract_code(job["code"]) if self._is_compat else job["code"]
        began = _clock()
        try:
            code, last, tree = self._compile(source, filename, job.get("facts"), job.get("cell") or "")
        finally:
            self._compile_ms = (_clock() - began) // 1000 / 1000
        sys.breakpointhook = _no_debugger
        if not job.get("watch"):
            tree = None  # its memory is free while the code runs
            if job.get("inputs"):  # after the compiler, whose time the guest measures
                self._inputs.begin(job["inputs"])
            return self._execute(code, last)
        recorder = recorder_factory.new_recorder(
            self._channel, filename, self._names, {*self._initial_names, "context"}
        )
        codes = [each for each in (code, last) if each]
        executable = recorder_source.executable_lines(codes)
        recorder.statements = recorder_source.describe(tree or self._parse(source, filename)[0])
        recorder.statements += recorder_source.describe_lines(executable)
        tree = None
        if job.get("stops") is not None:
            recorder.control = debug_control.DebugControl(
                recorder, self._channel, self._names, job["stops"], executable, codes
            )
            sys.breakpointhook = recorder.control.breakpoint_called
        recorder.start()
        self._outputs.step = lambda: recorder.steps
        try:
            if job.get("inputs"):
                self._inputs.begin(job["inputs"])
            value = self._execute(code, last)
            if recorder.control is not None:
                recorder.control.ended()
            return value
        except BaseException as error:
            is_exit = issubclass(type(error), SystemExit) and _exit_code(_code_of(error)) == 0
            if recorder.control is not None and not is_exit:
                recorder.control.uncaught(error)
            raise
        finally:
            recorder.stop()
            steps = recorder.steps
            self._outputs.step = lambda: steps  # what the end of the run shows; it must not keep the recorder alive
            sys.breakpointhook = _no_debugger
            if self._channel.take_interrupt():
                raise KeyboardInterrupt

    @staticmethod
    def _parse(source: str, filename: str):
        """Returns the tree of the source, and the text that was parsed."""
        try:
            if "\0" in source:
                line = source.count("\n", 0, source.index("\0")) + 1
                raise SyntaxError("the code has a null byte: remove it", (filename, line, 1, ""))
            return notebook_code.parse(source, filename, _FLAGS | ast.PyCF_ONLY_AST)
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            raise SyntaxError(
                "the code has a lone surrogate, which is not a character", (filename, line, 1, "")
            ) from None
        except (RecursionError, MemoryError):
            raise SyntaxError(_TOO_DEEP, (filename, 1, 1, "")) from None

    def _compile(self, source: str, filename: str, looked_at: "list | None" = None, path: str = ""):
        """Returns the code without the last expression, that expression, and the tree; each may be None. looked_at are
        the lines of statements whose values are looked at, and path is that of a value whose origin is followed."""
        text = source.replace("\r\n", "\n").replace("\r", "\n") + "\n"
        lines = text.replace("\n", "\n\0").split("\0")[:-1]  # with their line ends; code has no null byte
        linecache.cache[filename] = (len(source), None, lines, filename)
        # Most code is one expression and needs no tree. With a backslash, a warning about an escape would appear twice.
        if "\n" not in source and "\\" not in source and not looked_at and self._rules.passes(source):
            try:
                return None, _compile(source, filename, "eval", _FLAGS, True), None
            except Exception:
                pass  # it is a statement, or wrong: the code below says why
        tree, parsed = self._parse(source, filename)
        self._rules.check(parsed, tree, self._names)
        if looked_at:
            self._probes = fact_probes.Probes(parsed, looked_at)
            self._probes.instrument(tree)
            if path:
                self._trace = cell_trace.Trace(parsed, path)
                self._trace.instrument(tree)
        try:
            code, last, body = None, None, tree.body
            if body and isinstance(body[-1], ast.Expr) and not notebook_code.hides_value(parsed, tree):
                last = _compile(ast.Expression(body[-1].value), filename, "eval", _FLAGS, True)
                tree.body = body[:-1]
            if tree.body:
                code = _compile(tree, filename, "exec", _FLAGS, True)
            tree.body = body
            return code, last, tree
        except (RecursionError, MemoryError):
            raise SyntaxError(_TOO_DEEP, (filename, 1, 1, "")) from None

    def _run_nested(self, source: str):
        """Runs code in a run, for get_ipython().run_cell_magic and others, and returns the value of its last
        expression."""
        code, last, _ = self._compile(source, "<cell>")
        if code:
            _exec(code, self._names)
        return _eval(last, self._names) if last else None

    def _execute(self, code, last):
        value = self._evaluate(code, last)
        if value is not None or self._is_compat or "__result__" in self._names:
            return value
        pending = processor_pipeline.pending_run(self._names.get("context"))
        return None if pending is None else self._wait(pending)

    def _evaluate(self, code, last):
        flags = (code.co_flags if code else 0) | (last.co_flags if last else 0)
        if flags & inspect.CO_COROUTINE:
            return self._wait(self._awaiting(code, last))
        try:
            if code:
                self._context.run(_exec, code, self._names)
            value = self._context.run(_eval, last, self._names) if last else None
        except KeyboardInterrupt:
            if self._loop is not None and not self._loop.is_closed():
                self._cancel(self._loop)
            raise
        if self._loop is not None and not self._loop.is_closed() and _all_tasks(self._loop):
            self._wait(_nothing())  # tasks that the code has made begin, as after code that awaits
        return value

    async def _awaiting(self, code, last):
        if code:
            started = _eval(code, self._names)
            if code.co_flags & inspect.CO_COROUTINE:
                await started
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
            if not task.done():  # it was interrupted, or another task called sys.exit()
                self._cancel(loop)
            elif not task.cancelled():
                task.exception()  # marks the exception as seen: asyncio does not log it

    def _cancel(self, loop) -> None:
        """Cancels the tasks of an interrupted run, so that they do not go on in the next."""
        tasks = _all_tasks(loop)
        for task in tasks:
            task.cancel()
        try:
            _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=0.02))
        except BaseException:
            pending = tasks
        if pending:  # they ignore it: the session gets another loop
            self._loop = None

    def _describe_outcome(self, outcome: dict, value, error: "BaseException | None", filename: str) -> None:
        self._digits = _get_digits()
        _set_digits(0)  # the integers of the outcome are written whole
        # isinstance would call a __class__ property of the user's.
        outcome["interrupt"] = issubclass(type(error), KeyboardInterrupt)
        if issubclass(type(error), SystemExit):
            code = _code_of(error)
            outcome["exit"] = _exit_code(code)
            if type(code) is str:
                _print(values.escaped(code), file=sys.stderr)
        if error is not None and outcome["exit"] != 0:
            outcome["exception"] = exception_report.describe(
                error, filename, self._names, self._policy, self._initial_names
            )
        shown = self._outputs
        try:
            shown.show_rest(outcome["interrupt"])
            if value is not None:
                shown.last(value)
        except KeyboardInterrupt:
            raise
        except BaseException:  # an object that calls sys.exit() while it is shown
            shown.left_out += 1
        if "__result__" in self._names:
            value = self._names["__result__"]
        outcome["result"], cut = json_values.plain(value)
        cuts = (
            ("result", cut),
            ("outputs", shown.left_out),
            ("rows", shown.cut_rows),
            ("columns", shown.cut_columns),
            ("text", shown.cut_text),
        )
        for name, count in cuts:
            if count > 0:
                outcome["truncated"][name] = count

    # -- inspecting, between runs

    def answer(self, question: dict) -> dict:
        """Answers a protocol.Inspect between runs. An interrupt ends an answer that takes too long."""
        answers = {"check": self._check, "complete": self._complete, "rows": self._table_rows}
        answer = answers.get(question.get("what", ""))
        if answer is None:
            return self.variables()
        try:
            self._channel.running = True
            try:
                with warnings.catch_warnings():  # those about the code come when it runs
                    warnings.simplefilter("ignore")
                    return answer(question)
            finally:
                self._channel.running = False
        except table_rows.NoTable as error:
            return {"failed": "NoTable", "reason": str(error)}
        except BaseException as error:
            return {"failed": values.name_of(type(error))}

    def _table_rows(self, question: dict) -> dict:
        """Returns a sandbox.TablePage of a variable, or of a table that a run showed or returned."""
        asked = question["rows"]
        name = asked.get("variable")
        if name:
            value = lookup.find(self._names, name, self)
            if value is self:
                raise table_rows.NoTable(f"the session has no variable {name}")
        else:
            value = self._tables.find(asked["execution"], asked["number"])
        return self._tables.answer(value, asked)

    def _check(self, question: dict) -> dict:
        """Returns a sandbox.Verdict on code without running it."""
        source = question["code"]
        names = dict(lookup.pairs(self._names))
        problems: list = []
        tree = None
        try:
            tree, parsed = self._parse(source, "<code>")
            problems += self._rules.findings(parsed, tree, names, self._policy.get("environment", "default"))
            _compile(tree, "<code>", "exec", _FLAGS, True)  # the compiler finds some errors only now
        except SyntaxError as error:
            described = exception_report.describe(error, "<code>", names, self._policy)
            keys = [key for key in ("line", "column", "message", "hint") if key in described]
            problems.append({"kind": "syntax", **{key: described[key] for key in keys}})
        except (RecursionError, MemoryError):
            problems.append({"kind": "syntax", "line": 1, "message": _TOO_DEEP})
        answer: dict = {"problems": problems}
        if incomplete_code.may_continue(notebook_code.without_commands(source), tree):
            answer["incomplete"] = True
        return answer

    def _complete(self, question: dict) -> dict:
        names = dict(lookup.pairs(self._names))
        if not self._is_compat:
            names = {**dict.fromkeys(helpers.REGISTRY), **names}
        found = completion.complete(question["code"], question["cursor"], names, self._rules.allows)
        if not found["settled"]:  # the service asks jedi, which reads the code of earlier runs
            runs = range(max(self._runs - 20, 1), self._runs + 1)
            earlier = [linecache.cache.get(f"<execution {n}>") for n in runs]
            sources = ["".join(kept[2]) for kept in earlier if kept is not None and len(kept) == 4]
            found["before"] = "\n".join(sources)[-20_000:]
        return found

    def _user_variables(self) -> dict:
        """Returns the variables that the user has made, without modules."""
        return {
            name: value
            for name, value in lookup.pairs(self._names)
            if not (name[:1] == "_" or name == "context" or self._initial_names.get(name, self) is value)
            and type(value) is not types.ModuleType
        }

    def variables(self) -> dict:
        """Returns a bounded sandbox.Variables. It runs no user code."""
        shown: dict = {}
        total = 0
        names = lookup.pairs(self._names)
        for name, value in self._user_variables().items():
            total += 1
            if len(shown) >= MAX_VARIABLES:
                continue
            entry: dict = {"type": values.type_name(value), "repr": values.preview(value, 300)}
            size = values.shape(value)
            if size is not None:
                entry["shape"] = size
            shown[values.readable(name, 100)] = entry
        public = [values.readable(name, 100) for name, _ in names if name[:1] != "_"][:1000]
        answer = {"variables": shown, "globals": public, "total": total}
        while len(_dumps(answer)) > MAX_VARIABLES_BYTES and shown:
            for name in list(shown)[len(shown) // 2 :]:
                del shown[name]
            del public[len(public) // 2 :]
        return answer


async def _nothing() -> None:
    pass


def _set_environ(variables: "dict[str, str | None]") -> "dict[str, str | None]":
    """Sets environment variables, or removes those that are None. Returns the values before."""
    before = {name: os.environ.get(name) for name in variables}
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def text_stream(fd: int) -> io.TextIOWrapper:
    """Returns an unbuffered text stream, so that text that is printed before a kill is not lost."""
    raw = late_output.Output(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def _exit_code(code) -> int:
    """Returns the exit status that a process would have for this argument of sys.exit."""
    if code is None:
        return 0
    return int.__and__(code, 0xFF) if issubclass(type(code), int) else 1
