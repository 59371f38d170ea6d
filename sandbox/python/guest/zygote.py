"""The zygote imports the warm packages once and forks guests, which inherit the imported packages.

It runs no user code and holds no secret. But the packages are code of strangers, so it has no right that a guest lacks,
except to fork guests that the service asks for (lockdown.lock_zygote). It talks to the service over its control socket,
descriptor 3, as fork_server.py describes. When the socket closes, the zygote exits, and the kernel kills every guest:
the launcher, which ends with the zygote, is the init process of their pid namespace, or, without a pid namespace, the
zygote is the parent of their parent-death signal.
"""

import base64
import ctypes
import gc
import importlib
import io
import json
import os
import signal
import struct
import sys
import threading
import typing

CONTROL = 3
_SA_NOCLDSTOP = 1
_SMALL_OBJECT, _POOL, _POOL_HEAD = 512, 1 << 14, 48  # bytes, of CPython's allocator
_MAX_FILLED = 1 << 18  # bytes that are filled for each size of object
_LARGE_OBJECT = 100_000  # bytes; glibc maps larger ones outside its free memory
_EXIT_FAILED = 71  # exit status of a guest that failed


def main() -> None:
    config = json.loads(os.environ.pop("GLASSHOUSE_ZYGOTE"))
    sys.argv = [""]
    for name in ("LD_BIND_NOW", "LD_PRELOAD", "PYTHONHASHSEED"):  # they are for this process only
        os.environ.pop(name, None)
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
    register = os.register_at_fork
    fork_hooks = collect_fork_hooks()
    import fonts
    import fork_server
    import guest
    import lockdown

    lockdown.without = frozenset(config.get("without") or ())
    signal_fd = child_signals()
    lockdown.lock_zygote(CONTROL, config["lock"])
    sys.path += config["path"]  # from here on code of strangers runs
    with fonts.kept_in_memory() as kept:
        warm_up(config["warm"])
    warm_session()
    os.register_at_fork = register
    fork_hooks = [(caller, hooks) for caller, hooks in fork_hooks if not (kept and caller == fonts.HOOKED_MODULE)]
    for _, hooks in fork_hooks:
        register(**hooks)
    filters = {name: base64.b64decode(program) for name, program in config["filters"].items()}
    one = guest.Guest(filters, config["readable"], config["policy"], config["rules"], config["private"])
    for birth in config["births"]:
        one.prepare(birth)
    if threading.active_count() != 1:
        raise SystemExit(
            "zygote: a warm package started a thread, and a fork would lose it; take it out of the warm packages"
        )
    gc.collect()
    fill_pools()
    sort_free_memory()
    gc.freeze()  # a collection in a guest would copy every page
    ready = json.dumps({"op": "ready", "python": list(sys.version_info[:3])}).encode()
    live(one, fork_server.serve(CONTROL, signal_fd, one.batches, bool(fork_hooks), ready, not config["sessions"]))


def collect_fork_hooks() -> "list[tuple[str, dict]]":
    """Returns a list that gets the fork hooks that modules register from now on, each with the name of its module.

    Hooks of the standard library are registered but not in the list. A process with one thread does not need them,
    because guest.py does the necessary part. If the list stays empty, the zygote forks without hooks, which would
    write to, and so copy, 200 pages.
    """
    register, foreign = os.register_at_fork, []

    def register_at_fork(**hooks) -> None:
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if caller.partition(".")[0] in sys.stdlib_module_names:
            register(**hooks)
        else:
            foreign.append((caller, hooks))

    os.register_at_fork = register_at_fork
    return foreign


def fill_pools() -> None:
    """Fills the free memory for small objects in old pools, so that a guest allocates its objects in new pools.

    New pools are next to each other. In old pools, a guest would copy a page for each size of object, and another page
    for the head of the pool.
    """
    malloc, got = ctypes.pythonapi.PyObject_Malloc, (ctypes.c_size_t * 5)()
    malloc.restype, size = ctypes.c_size_t, 0
    while sys.getallocatedblocks() and size < _SMALL_OBJECT:  # 0 blocks: Python uses another allocator
        size += 16
        for _ in range(_MAX_FILLED // size):
            got[0] = malloc(size)
            if got[0] % _POOL <= _POOL_HEAD + size:  # the first object of a pool (ctypes may hold one): the pool is new
                for n in range(1, 5):  # if the next ones follow each other
                    got[n] = malloc(size)
                if got[4] - got[0] == 4 * size:
                    break


def sort_free_memory() -> None:
    """Makes malloc sort the free parts of its memory, which the first large request of a guest would do.

    malloc keeps its links between free parts in these parts, so a guest would copy the page of nearly each of them.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes, libc.free.restype = ctypes.c_void_p, [ctypes.c_void_p], None
    libc.free(libc.malloc(ctypes.c_size_t(_LARGE_OBJECT)))


def child_signals() -> int:
    """Returns a signalfd that can be read when a child has ended, but not when one is stopped or continued.

    Sessions are stopped around each run. A signal handler would have to be removed in each guest.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    no_stops = struct.pack("P128siP", 0, bytes(128), _SA_NOCLDSTOP, 0)  # a struct sigaction: SIG_DFL
    libc.sigaction(signal.SIGCHLD, no_stops, None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    mask = (ctypes.c_uint64 * 16)(1 << signal.SIGCHLD - 1)  # a sigset_t
    fd = libc.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise SystemExit("zygote: signalfd failed: " + os.strerror(ctypes.get_errno()))
    return fd


def warm_up(modules: list[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"zygote: the warm package {name} is not in this environment: {error}", file=sys.stderr, flush=True)
    if "matplotlib.pyplot" in modules and "matplotlib.pyplot" in sys.modules:
        # The first figures fill the caches of fonts and backends.
        import figures
        import fonts

        fonts.use_fallbacks(sys.modules["matplotlib"])
        pyplot = sys.modules["matplotlib.pyplot"]
        for _ in range(3):
            figure, (axes, other) = pyplot.subplots(1, 2)
            axes.plot([0, 1], label="a")
            axes.bar([0, 1], [1, 2])
            axes.set_title("Title")
            axes.set_xlabel("x")
            axes.legend()
            other.scatter([0, 1], [1, 100])
            other.set_yscale("log")  # whose labels are formulas
            figures.png(figure)
            pyplot.savefig(io.BytesIO(), format="png", bbox_inches="tight")
            pyplot.close("all")
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(ctypes.c_size_t(0))  # a guest that draws then gets empty pages, which cost less than copies
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # numpy imports it later
    samples: list = []
    if "pandas" in sys.modules:
        pandas = sys.modules["pandas"]
        frame = pandas.DataFrame({"k": ["a", "b"], "v": [1, 2], "x": [0.5, 1]})
        frame["t"] = pandas.to_datetime(["2024-01-01", "2024-01-02"])
        frame.groupby("k")["v"].sum()
        repr(frame)
        samples = [frame, frame["x"], frame["v"].values, *frame.iloc[0]]
    warm_recorder(samples)


def warm_recorder(samples: list) -> None:
    """Reads values and code as the recorder does, which fills what the guests know of the classes of libraries.

    Otherwise the first table of a recording costs 2 ms: a search in all modules copies the pages of their names.
    """
    import ast

    import recorder_code
    import recorder_format
    import recorder_objects
    import recorder_source

    for _ in range(10):
        objects = recorder_objects.Objects(recorder_format.Writer(), "__main__")
        objects.max_objects = 100
        for value in samples:
            objects.value(value)
            objects.describe_reader(type(value))
        recorder_source.describe(ast.parse(RECORDED_PROGRAM))
        recorder_code.Code(compile(RECORDED_PROGRAM, "<execution 0>", "exec"), b"", {})


# Programs with operations of nearly every run. They run before the fork, often enough that the interpreter specialises
# its code and fills its caches. Otherwise each of these changes would cost a guest the copy of a page.
WARM_UP_PROGRAMS = (
    "print('hello')",
    "total = sum(n * n for n in range(10))\nf'{total:.2f}'",
    "import json\n[{'name': 'x', 'n': 1, 'part': 0.5, 'all': [1, 2]}, None, True]",
    "rows = db_query('SELECT 1', {'n': 1})\nrows[0]['n']",
    "import asyncio\nawait asyncio.sleep(0)\nawait db_query('SELECT 1')",
    "debug('x')\ninspect_var('y', 1)",
    "{}['missing']",
    "1 +",
    "class A:\n    def f(self): return 1\nA().f()",
)


# It is described as for a recording, and does not run.
RECORDED_PROGRAM = """
import pandas as pd
frame = pd.DataFrame({'k': ['a', 'b'], 'v': [1, 2]})
class Stats:
    def __init__(self): self.count = 0
    def add(self, n):
        if n > 0 and n is not None: self.count += n
stats, rows = Stats(), [row for row in frame.to_dict('records') if row['v'] > 1]
for i, row in enumerate(rows):
    try: stats.add(row['v'] * 2 - i)
    except ValueError as error: print(f'{error}: {row}')
    else: continue
totals = {name: float(part['v'].sum()) for name, part in frame.groupby('k')}
best = max(totals, key=lambda name: totals[name], default=None)
with open('x') as file: text = file.read()[1:].strip()
"""


# Its result is shown as text, HTML and data.
PANDAS_PROGRAM = "import pandas\npandas.DataFrame({'k': ['a', 'b'], 'v': [1, 0.5]})"


def warm_session() -> None:
    """Runs the programs in a temporary session."""
    import asyncio
    import linecache
    import tempfile

    import session

    class NoSupervisor:
        running = False

        def query(self, _sql, _params):
            kinds = ("int", "text", "decimal", "timestamptz", "json")
            columns = [{"name": n, "type": n, "kind": n, "array": False} for n in ("n", *kinds)]
            return columns, [[1], [1], ["x"], ["1.5"], ["2024-01-01 00:00:00+00"], ["{}"]], False

        def note(self, _note):
            pass

        output = begin_run = note

        def end_run(self):
            pass

    before, streams = sys.modules["__main__"], (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    thrown = session.Session(NoSupervisor())
    thrown.enter({}, {"enabled": True, "allowed": ["json", "asyncio", "pandas"]})
    programs = (*WARM_UP_PROGRAMS, PANDAS_PROGRAM) if "pandas" in sys.modules else WARM_UP_PROGRAMS
    for code in programs * 10:
        thrown.run({"code": code, "context": {"given": 1}})
    thrown.variables()
    loop = thrown._loop
    if loop is not None:
        loop.close()
    asyncio.set_event_loop(None)
    sys.modules["__main__"] = before
    sys.stdout, sys.stderr = streams
    linecache.cache.clear()
    tempfile._name_sequence = None  # type: ignore[attr-defined]
    sys.path_importer_cache.clear()


def live(one, index: int) -> typing.NoReturn:
    """Runs a guest whose start-up has this index, until the guest exits."""
    try:
        one.live(index)
    except BaseException as error:  # a guest must never return into the loop of the zygote
        try:
            os.write(2, f"guest: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        except BaseException:
            pass
    finally:
        os._exit(_EXIT_FAILED)


if __name__ == "__main__":
    main()
