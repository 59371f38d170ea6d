"""The zygote: imports the warm packages once and forks children that have them.

It runs no user code and holds no secret. It speaks with the service over its control
socket (seqpacket, descriptor 3), in messages that begin with a kind and a child's number:

    F number uid enter    with three descriptors (hatch, stdout, stderr): make a child, which
                          locks itself down as enter, JSON, says, or is told later
    f number              with its pidfd: it is made
    e number why          it is not
    x number status time  it has ended: a wait status, and microseconds of CPU time

When the socket closes, it exits, and the kernel ends every child with it: it is the
init of their pid namespace, or, where there is none, the parent whose death they
asked to die of. After each fork it copies, like the child, each page that it writes
to; so its loop does little.
"""

import base64
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import threading

CONTROL = 3
_FORK, _HEAD, _EXITED = struct.Struct(">cII"), struct.Struct(">cI"), struct.Struct(">cIIQ")
_SA_NOCLDSTOP = 1
_ENDS, _ONE = struct.Struct("3i"), struct.Struct("i")  # descriptors


def main() -> None:
    config = json.loads(sys.argv[1])
    sys.argv = [""]
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
    sys.path += config["path"]
    register = os.register_at_fork
    hooked = watch_hooks()
    import child
    import fonts
    import lockdown

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
    control = socket.socket(fileno=CONTROL)
    if threading.active_count() != 1:
        raise SystemExit("zygote: a warm package started a thread; forking would be unsafe")
    ended = child_signals()
    gc.collect()
    use_huge_pages(gc.get_objects())
    gc.freeze()  # keeps a collection in a child from copying every page
    home = os.pidfd_open(os.getpid()) if config["private"] and "pid" not in lockdown.without else -1
    children: dict[int, int] = {}
    control.send(json.dumps({"op": "ready", "python": list(sys.version_info[:3])}).encode())

    poll = select.poll()
    poll.register(CONTROL, select.POLLIN)
    poll.register(ended, select.POLLIN)
    room = socket.CMSG_SPACE(_ENDS.size)
    while True:
        for fd, _ in poll.poll():
            if fd == ended:
                os.read(ended, 4096)
                reap(control, children)
                continue
            message, sent, _, _ = control.recvmsg(4096, room)
            if not message:
                os._exit(0)
            _, number, uid = _FORK.unpack_from(message)
            ends = _ENDS.unpack(sent[0][2])
            try:
                pid = fork(life, message[_FORK.size :], uid, ends, home, bool(hooked))
            except OSError as error:
                control.send(_HEAD.pack(b"e", number) + str(error).encode())
            else:
                children[pid] = number
                pidfd = os.pidfd_open(pid)
                control.sendmsg([_HEAD.pack(b"f", number)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _ONE.pack(pidfd))])
                os.close(pidfd)
            for each in ends:
                os.close(each)


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
    thrown.enter({}, {"enabled": True, "allowed": ["json", "asyncio"]})
    for code in PROGRAMS * 10:
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


def reap(control: socket.socket, children: dict[int, int]) -> None:
    while True:
        try:
            pid, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        number = children.pop(pid, None)
        if number is not None:
            control.send(_EXITED.pack(b"x", number, status, round((used.ru_utime + used.ru_stime) * 1e6)))


def fork(life, enter: bytes, uid: int, ends: "tuple[int, ...]", home: int, hooks: bool) -> int:
    """Forks one child, into namespaces of its own where there are any to be had (then
    home, a pidfd of this process, is not -1); returns its pid here.

    A new pid namespace is good for one fork only: the way back is home.
    """
    birth = life.birth(enter)
    birth.hatch.set(ends[0])
    birth.out.set(ends[1])
    birth.err.set(ends[2])
    birth.uid.set(uid)
    pid = birth.batch.fork(home, hooks)
    if pid:
        return pid
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
