"""The zygote: imports the warm packages once and forks children that have them.

It runs no user code and holds no secret. It speaks with the service over its control
socket, descriptor 3, as nursery.py says. When that closes, it exits, and the kernel
ends every child with it: it is the init of their pid namespace, or, where there is
none, the parent whose death they asked to die of.
"""

import base64
import ctypes
import gc
import importlib
import io
import json
import os
import signal
import socket
import struct
import sys
import threading
import typing

CONTROL = 3
_SA_NOCLDSTOP = 1
_SMALL_OBJECT, _POOL, _POOL_HEAD = 512, 1 << 14, 48  # of CPython's allocator, in bytes
_HOLES = 1 << 18  # bytes; sizes of object that have left more keep the rest


def main() -> None:
    config = json.loads(sys.argv[1])
    sys.argv = [""]
    for name in ("LD_BIND_NOW", "LD_PRELOAD"):  # they have had their effect
        os.environ.pop(name, None)
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
    sys.path += config["path"]
    register = os.register_at_fork
    hooked = watch_hooks()
    import child
    import fonts
    import lockdown
    import nursery

    lockdown.without = frozenset(config.get("without") or ())

    with fonts.held() as held:
        warm_up(config["warm"])
    warm_session()
    os.register_at_fork = register
    hooked = [(caller, hooks) for caller, hooks in hooked if not (held and caller == fonts.HOOKED)]
    for _, hooks in hooked:
        register(**hooks)
    filters = {name: base64.b64decode(program) for name, program in config["filters"].items()}
    life = child.Child(filters, config["readable"], config["policy"], config["rules"], config["private"])
    for enter in config["births"]:
        life.prepare(enter)
    control = socket.socket(fileno=CONTROL)
    if threading.active_count() != 1:
        raise SystemExit("zygote: a warm package started a thread; forking would be unsafe")
    ended = child_signals()
    gc.collect()
    fill_pools()
    use_huge_pages(gc.get_objects())
    gc.freeze()  # keeps a collection in a child from copying every page
    home = os.pidfd_open(os.getpid()) if config["private"] and "pid" not in lockdown.without else -1
    control.send(json.dumps({"op": "ready", "python": list(sys.version_info[:3])}).encode())
    live(life, nursery.serve(CONTROL, ended, home, life.batches, os.fork if hooked else None))


def watch_hooks() -> "list[tuple[str, dict]]":
    """The hooks for forks that modules ask for from here on, with the module, other than those of the
    standard library. They are put off. Of the others we know what they do, and a child of one thread
    needs none but what child.py does itself: they would touch, and so copy, 200 pages."""
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
    """Takes the memory that Python has left over here and there for small objects, so that a
    child gets it from new pools, one beside the other: where it were scattered, each size of
    object would cost a page of its own, and one more for the pool's head."""
    malloc, got = ctypes.pythonapi.PyObject_Malloc, (ctypes.c_size_t * 5)()
    malloc.restype, size = ctypes.c_size_t, 0
    while sys.getallocatedblocks() and size < _SMALL_OBJECT:  # 0 blocks: another allocator is used
        size += 16
        for _ in range(_HOLES // size):
            got[0] = malloc(size)
            if got[0] % _POOL <= _POOL_HEAD + size:  # the first, or ctypes has it: a pool is new
                for n in range(1, 5):  # where the next ones are side by side
                    got[n] = malloc(size)
                if got[4] - got[0] == 4 * size:
                    break


def use_huge_pages(objects: list) -> None:
    """Moves the memory that these are in to huge pages, as far as the kernel can and will:
    a fork, and a child's end, take one entry for each where they took 512. A child
    that writes copies a small page all the same."""
    collapse, shift = 25, 21  # MADV_COLLAPSE, since Linux 6.1; 2 MiB
    madvise = ctypes.CDLL(None).madvise
    for page in {id(each) >> shift for each in objects}:
        madvise(ctypes.c_void_p(page << shift), ctypes.c_size_t(1 << shift), collapse)


def child_signals() -> int:
    """A descriptor that can be read when a child has ended; that one was stopped, or goes on, as
    each session does around its runs, tells nothing. There is no handler that a
    child would have to take away."""
    libc = ctypes.CDLL(None)
    no_stops = struct.pack("P128siP", 0, bytes(128), _SA_NOCLDSTOP, 0)  # a struct sigaction: SIG_DFL
    libc.sigaction(signal.SIGCHLD, no_stops, None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    mask = (ctypes.c_uint64 * 16)(1 << signal.SIGCHLD - 1)  # a sigset_t
    fd = libc.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK)
    if fd < 0:
        raise SystemExit("zygote: there is no signalfd")
    return fd


def warm_up(modules: list[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"zygote: {name} is not in this environment: {error}", file=sys.stderr, flush=True)
    if "matplotlib.pyplot" in modules and "matplotlib.pyplot" in sys.modules:
        # The first figures pay for fonts, backends and caches; pay here, once.
        import figures

        pyplot = sys.modules["matplotlib.pyplot"]
        for _ in range(3):
            figure, (axes, other) = pyplot.subplots(1, 2)
            axes.plot([0, 1], label="a")
            axes.bar([0, 1], [1, 2])
            axes.set_title("Title")
            axes.set_xlabel("x")
            axes.legend()
            other.scatter([0, 1], [1, 100])
            other.set_yscale("log")  # its labels are formulas
            figures.png(figure)
            pyplot.savefig(io.BytesIO(), format="png", bbox_inches="tight")
            pyplot.close("all")
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(ctypes.c_size_t(0))  # a child that draws there gets empty pages, which are cheaper than copies
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # which numpy leaves for later
    if "pandas" in sys.modules:
        pandas = sys.modules["pandas"]
        frame = pandas.DataFrame({"k": ["a", "b"], "v": [1, 2]})
        frame.groupby("k")["v"].sum()
        repr(frame)


# What nearly every run does, done often enough that the interpreter has specialised
# its code and filled its caches before the fork: after it, each costs a copied page.
PROGRAMS = (
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


TABLE = "import pandas\npandas.DataFrame({'k': ['a', 'b'], 'v': [1, 0.5]})"  # shown as text, HTML and data


def warm_session() -> None:
    """Runs the PROGRAMS in a session that is thrown away."""
    import asyncio
    import linecache
    import tempfile

    import session

    class Nobody:
        running = False

        def query(self, _sql, _params):
            kinds = ("int", "text", "decimal", "timestamptz", "json")
            columns = [{"name": n, "type": n, "kind": n, "array": False} for n in ("n", *kinds)]
            return columns, [[1], [1], ["x"], ["1.5"], ["2024-01-01 00:00:00+00"], ["{}"]], False

        def note(self, _note):
            pass

        output = note

    before, streams = sys.modules["__main__"], (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    thrown = session.Session(Nobody())
    thrown.enter({}, {"enabled": True, "allowed": ["json", "asyncio", "pandas"]})
    for code in (PROGRAMS + (TABLE,) if "pandas" in sys.modules else PROGRAMS) * 10:
        thrown.run({"code": code, "context": {"given": 1}})
    thrown.look()
    loop = thrown._loop
    if loop is not None:
        loop.close()
    asyncio.set_event_loop(None)
    sys.modules["__main__"] = before
    sys.stdout, sys.stderr = streams
    linecache.cache.clear()
    tempfile._name_sequence = None  # type: ignore[attr-defined]
    sys.path_importer_cache.clear()


def live(life, birth: int) -> typing.NoReturn:
    """A child's life."""
    try:
        life.live(birth)
    except BaseException as error:  # a child must never return into the zygote's loop
        try:
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        except BaseException:
            pass
    finally:
        os._exit(71)


if __name__ == "__main__":
    main()
