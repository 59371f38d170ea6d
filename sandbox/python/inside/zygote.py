"""The zygote: imports the warm packages once and forks children that have them.

It runs no user code and holds no secret. It reads its control socket (seqpacket,
descriptor 3): {"op": "fork", "id": n} with three descriptors (hatch, stdout,
stderr) makes a child; it answers {"op": "forked", "id": n} with the child's
pidfd, or {"op": "failed", ...}, and later {"op": "exited", "id": n, "status": s,
"cpu": t} (a wait status, and seconds). When the socket closes, it exits, and the kernel ends every child
with it: it is the init of their pid namespace, or, where there is none, the parent
whose death they asked to die of.
"""

import base64
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import threading

CONTROL = 3
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID = 0x20000, 0x4000000, 0x8000000, 0x20000000


def main() -> None:
    config = json.loads(sys.argv[1])
    sys.argv = [""]
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
    sys.path += config["path"]
    import child
    import lockdown

    lockdown.without = frozenset(config.get("without") or ())

    warm_up(config["warm"])
    warm_session()
    filters = {name: base64.b64decode(program) for name, program in config["filters"].items()}
    life = child.Child(filters, config["readable"], config["policy"], config["rules"])
    control = socket.socket(fileno=CONTROL)
    if threading.active_count() != 1:
        raise SystemExit("zygote: a warm package started a thread; forking would be unsafe")
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    gc.collect()
    gc.freeze()  # keeps a collection in a child from copying every page
    own_pid_namespace = os.pidfd_open(os.getpid()) if config["private"] else -1
    children: dict[int, int] = {}
    control.send(json.dumps({"op": "ready", "python": list(sys.version_info[:3])}).encode())

    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wake_read:
                os.read(wake_read, 4096)
                reap(control, children)
                continue
            message, fds, _, _ = socket.recv_fds(control, 4096, 3)
            if not message:
                os._exit(0)
            request = json.loads(message)
            try:
                pid = fork(lockdown, life, own_pid_namespace, fds)
            except OSError as error:
                control.send(json.dumps({"op": "failed", "id": request["id"], "error": str(error)}).encode())
            else:
                children[pid] = request["id"]
                pidfd = os.pidfd_open(pid)
                socket.send_fds(control, [json.dumps({"op": "forked", "id": request["id"]}).encode()], [pidfd])
                os.close(pidfd)
            finally:
                for each in fds:
                    os.close(each)


def warm_up(modules: list[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"zygote: {name} is not in this environment: {error}", file=sys.stderr, flush=True)
    if "matplotlib.pyplot" in modules and "matplotlib.pyplot" in sys.modules:
        # The first figures pay for fonts, backends and caches; pay here, once.
        pyplot = sys.modules["matplotlib.pyplot"]
        for _ in range(3):
            _, axes = pyplot.subplots()
            axes.plot([0, 1], label="a")
            axes.bar([0, 1], [1, 2])
            axes.set_title("Title")
            axes.set_xlabel("x")
            axes.legend()
            pyplot.savefig(io.BytesIO(), format="png", bbox_inches="tight")
            pyplot.close("all")
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
            control.send(json.dumps({"op": "exited", "id": number, "status": status, "cpu": used.ru_utime + used.ru_stime}).encode())


def fork(lockdown, life, own_pid_namespace: int, fds: list[int]) -> int:
    """Fork one child, into namespaces of its own where there are any to be had (then
    own_pid_namespace is not -1); returns its pid here.

    unshare(CLONE_NEWPID) is good for one fork only: the way back is setns to the
    namespace that this process is in.
    """
    private, zygote = own_pid_namespace >= 0, os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    apart = private and "pid" not in lockdown.without
    if apart:
        lockdown.unshare(CLONE_NEWPID)
    try:
        pid = os.fork()
    except OSError:
        if apart:
            lockdown.setns(own_pid_namespace, CLONE_NEWPID)
        raise
    if pid:
        if apart:
            lockdown.setns(own_pid_namespace, CLONE_NEWPID)
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        lockdown.arrange_descriptors(fds)
        if private:
            lockdown.unshare(CLONE_NEWNS | CLONE_NEWUTS | (0 if "ipc" in lockdown.without else CLONE_NEWIPC))
        else:
            lockdown.die_with(zygote)
        life.live()
    except BaseException as error:  # a child must never return into the zygote's loop
        try:
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        except BaseException:
            pass
    finally:
        os._exit(71)


if __name__ == "__main__":
    main()
