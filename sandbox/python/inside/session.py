"""One sandbox's Python session: a namespace that lasts, and runs in it."""

import ast
import asyncio
import builtins
import inspect
import linecache
import sys
import types

import check
import failure
import namespace
import outputs
import processor_pipeline  # noqa: F401 - in sys.modules, for the user's import
import tracer
import values

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_HELPERS = "/glasshouse/"
MAX_VARIABLES = 200


class Session:
    """config is {"sandbox_id", "policy", "rules"}; channel is a hatch.Channel."""

    def __init__(self, channel, config: dict):
        self._channel = channel
        self._policy = config["policy"]
        self._rules = config["rules"]
        self._runs = 0
        self._loop = None
        self._outputs = outputs.Outputs()
        helpers = namespace.Helpers(channel, self.look)
        helpers.display = self._outputs.display
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self._names = main.__dict__
        self._names.update(helpers.names())
        self._given = {name: value for name, value in self._names.items()}
        asyncio.run = _nested(asyncio.run)
        sys.path.insert(0, "/session")
        # The helpers' modules are not the user's to import by accident.
        for name in [p for p in sys.path if p.startswith(_HELPERS[:-1])]:
            sys.path.remove(name)
        self._imported: set = set()

    # -- running

    def run(self, job: dict) -> dict:
        """Runs job["code"]; returns a sandbox.Outcome. Never raises."""
        self._runs += 1
        filename = f"<execution {self._runs}>"
        names, channel = self._names, self._channel
        outcome: dict = {"result": None, "exception": None, "outputs": [], "truncated": {}, "exit": None, "interrupt": False}
        names.pop("__result__", None)
        context = job.get("context") or {}
        names["context"] = context if not isinstance(context, dict) else _Context(context)
        for key, value in context.items():
            if key.isidentifier():
                names[key] = value
        self._outputs.begin()
        watch = None
        value = None
        try:
            code, last = self._compile(job["code"], filename)
            if job.get("watch"):
                watch = tracer.Tracer(channel, filename, set(self._given) | {"context"})
                watch.start()
            channel.running = True
            try:
                value = self._execute(code, last)
                self._outputs.figures()
            finally:
                channel.running = False
                if watch:
                    watch.stop()
        except SystemExit as error:
            outcome["exit"] = error.code if type(error.code) is int else 0 if error.code is None else 1
            if outcome["exit"]:
                outcome["exception"] = failure.describe(error, filename, names, self._policy)
        except KeyboardInterrupt as error:
            outcome["interrupt"] = True
            outcome["exception"] = failure.describe(error, filename, names, self._policy)
        except BaseException as error:
            outcome["exception"] = failure.describe(error, filename, names, self._policy)
        try:
            self._conclude(outcome, value)
        except BaseException as error:
            outcome["result"] = values.opaque(error)
        return outcome

    def _conclude(self, outcome: dict, value) -> None:
        if "__result__" in self._names:
            value = self._names["__result__"]
        elif outcome["exception"] is None:
            self._outputs.last(value)
        if value is not None:
            outcome["result"], cut = values.to_json(value)
            if cut:
                outcome["truncated"]["result"] = cut
        outcome["outputs"] = self._outputs.bundles
        if self._outputs.cut:
            outcome["truncated"]["outputs"] = self._outputs.cut

    def _compile(self, source: str, filename: str):
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        tree = compile(source, filename, "exec", _FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
        check.check(tree, self._rules)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), filename, "eval", _FLAGS, dont_inherit=True)
        return compile(tree, filename, "exec", _FLAGS, dont_inherit=True), last

    def _execute(self, code, last):
        if (code.co_flags | (last.co_flags if last else 0)) & inspect.CO_COROUTINE:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            return self._loop.run_until_complete(self._awaiting(code, last))
        exec(code, self._names)
        return eval(last, self._names) if last else None

    async def _awaiting(self, code, last):
        done = eval(code, self._names)
        if inspect.iscoroutine(done):
            await done
        if last is None:
            return None
        value = eval(last, self._names)
        return await value if last.co_flags & inspect.CO_COROUTINE else value

    # -- looking

    def look(self) -> dict:
        """A sandbox.Variables: a bounded picture that runs no code of the user's."""
        shown, total = {}, 0
        for name, value in list(self._names.items()):
            if name[:1] == "_" or self._given.get(name, self) is value or name == "context":
                continue
            if type(value) is types.ModuleType:
                continue
            total += 1
            if len(shown) >= MAX_VARIABLES:
                continue
            shown[name] = {"type": values.type_name(value), "repr": values.preview(value)}
            if values.type_name(value).startswith(("pandas.", "numpy.")) and hasattr(type(value), "shape"):
                shown[name]["shape"] = [int(n) for n in value.shape]
        public = [name for name in self._names if name[:1] != "_"]
        return {"variables": shown, "globals": public[:1000], "total": total}


class _Context(dict):
    """The run's context: a dict whose keys are attributes too (context.data)."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the context has no {name!r}; it has {sorted(map(str, self))}", name=name, obj=self) from None


def _nested(run):
    """asyncio.run that also works where a loop runs already, as under top-level await."""

    def nested(main, **kwargs):
        outer = asyncio._get_running_loop()
        if outer is None:
            return run(main, **kwargs)
        asyncio._set_running_loop(None)
        try:
            return run(main, **kwargs)
        finally:
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)

    nested.__doc__, nested.__name__, nested.__module__ = run.__doc__, "run", "asyncio"
    return nested


# Bound now: user code may replace the builtins.
compile, exec, eval = builtins.compile, builtins.exec, builtins.eval
