"""Tests Glasshouse's packages in a virtual machine of scripts/hosts, and prints the results as TAP.

The tests run in the order of this file, and each builds on those before it: install, start, use, upgrade, remove. The
machine has no network. Its processor is emulated, so no test measures time.
"""

import glob
import json
import os
import pathlib
import pwd
import re
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request

ADDRESS = "http://127.0.0.1:8080"
DATA = pathlib.Path("/var/lib/glasshouse")
GROUP = pathlib.Path("/sys/fs/cgroup/system.slice/glasshouse.service")
PACKAGES = "/srv/packages"
# The lines of the unit that give and take rights.
UNIT_RIGHTS = ("Delegate=", "NoNewPrivileges=", "CapabilityBoundingSet=", "Protect", "Private", "Restrict", "Lock",
               "SystemCall", "LimitNOFILE=", "TasksMax=")
tests = []


def test(function):
    """Add a test. Its name is the first line of its docstring."""
    tests.append(function)
    return function


def want(what, got, wanted):
    """Fail unless two values are equal."""
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, want {wanted!r}")


def check(what, condition, got=""):
    """Fail unless a condition is true."""
    if not condition:
        raise AssertionError(f"{what}: got {got!r}")


def run(*command, timeout=900, status=0, **options):
    """Run a command and return its output. Fail if its exit status is another one; None: any is right."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
                          stdin=options.pop("stdin", subprocess.DEVNULL), **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{' '.join(command)}: got status {done.returncode}, want {status}\n{done.stdout}")
    return done.stdout.strip()


def state(unit="glasshouse"):
    """Return the properties of a unit."""
    return dict(line.split("=", 1) for line in run("systemctl", "show", unit).splitlines() if "=" in line)


def journal():
    """Return what the service has logged."""
    return run("journalctl", "--no-pager", "--output=cat", "--unit=glasshouse")


def bearer():
    """Return the header that carries the admin key."""
    return "Bearer " + (DATA / "admin.key").read_text().strip()


def call(path, body=None, method=None, may_fail=False, timeout=300):
    """Call the service with its admin key and return the answer's text, also that of an error if it may fail."""
    headers = {"Authorization": bearer(), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADDRESS + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        if may_fail:
            return error.read().decode()
        raise AssertionError(f"{path}: got {error}: {error.read().decode()}") from None


def execute(code, **request):
    """Run code in a sandbox of its own and return the execution."""
    return json.loads(call("/sandbox/agent/quick-execute", {"code": code, **request}))


def create(**config):
    """Create a sandbox and return its ID. The processor is emulated, so runs have more time than usual."""
    config = {"max_execution_time": 120} | config
    return json.loads(call("/sandbox/create", {"config": config}))["sandbox_id"]


def run_in(sandbox, code):
    """Run code in a sandbox and return the execution."""
    return json.loads(call(f"/sandbox/{sandbox}/execute", {"code": code}))


def in_sandbox(code, **config):
    """Run code in a new sandbox with a configuration and return the execution."""
    sandbox = create(**config)
    try:
        return run_in(sandbox, code)
    finally:
        call(f"/sandbox/{sandbox}", method="DELETE")


def in_unit(user, *command, **environment):
    """Run a command in a unit of its own with the rights of the service, and return its output."""
    options = [line for line in pathlib.Path("/usr/lib/systemd/system/glasshouse.service").read_text().splitlines()
               if line.startswith(UNIT_RIGHTS)]
    settings = [f"--setenv={name}={value}" for name, value in environment.items()]
    return run("systemd-run", "--wait", "--pipe", "--quiet", "--collect", f"--uid={user}",
               *[f"--property={option}" for option in options], *settings, *command, timeout=1800)


def go_test(package, tests):
    """Run tests of a Go package in a unit with the rights of the service, and return their output."""
    shown = in_unit("glasshouse", f"/srv/{package}.test", "-test.short", "-test.v", "-test.timeout=25m",
                    f"-test.run={tests}", GLASSHOUSE_PYTHON="/usr/lib/glasshouse/python/bin/python")
    check("the tests were run", "--- PASS" in shown and "not tested" not in shown, shown)
    return shown


def wait_until(what, condition, seconds=60):
    """Poll for a state that has no event."""
    end = time.monotonic() + seconds
    while not condition():
        check(f"{what} within {seconds} s", time.monotonic() < end)
        time.sleep(0.2)


@test
def machine():
    """systemd is init, with control groups of version 2 alone"""
    want("process 1", pathlib.Path("/proc/1/comm").read_text(), "systemd\n")
    want("file system", run("stat", "-fc", "%T", "/sys/fs/cgroup"), "cgroup2fs")
    want("system", run("systemctl", "is-system-running", "--wait"), "running")


@test
def install():
    """apt installs the service without a network, and starts nothing"""
    shown = run("apt-get", "install", "-y", "--no-install-recommends", *glob.glob(PACKAGES + "/*.deb"))
    check("the installation says how to start it", "systemctl enable --now glasshouse" in shown, shown)
    want("active", run("systemctl", "is-active", "glasshouse", status=None), "inactive")
    want("enabled", run("systemctl", "is-enabled", "glasshouse", status=None), "disabled")


@test
def doctor():
    """doctor names the level full where a control group is delegated, else full-without-cgroups"""
    shown = in_unit("glasshouse", "/usr/bin/glasshouse", "doctor", "--data-dir", str(DATA))
    check("in a unit", "Level in use: full (" in shown and "cgroup v2" in shown, shown)
    shown = run("runuser", "-u", "nobody", "--", "glasshouse", "doctor", "--data-dir", "/tmp/none", status=None)
    check("of an ordinary user", "Level in use: full-without-cgroups (" in shown, shown)
    check("the remedy names systemd", "Delegate=" in shown, shown)


@test
def start():
    """systemctl enable --now returns when requests are answered, and the level is full"""
    run("systemctl", "enable", "--now", "glasshouse")
    want("active", run("systemctl", "is-active", "glasshouse"), "active")
    want("enabled", run("systemctl", "is-enabled", "glasshouse"), "enabled")
    want("code", execute("6 * 7")["result"], 42)
    want("status", state()["StatusText"], "Listening on " + ADDRESS)
    check("the status is shown", "Listening on " + ADDRESS in run("systemctl", "status", "--no-pager", "glasshouse"))
    check("level", "\nIsolation: full\n" in journal(), journal())
    wait_until("the packages are imported", lambda: '"status":"ready"' in call("/readyz", may_fail=True), 300)


@test
def account():
    """the service runs as its account without capabilities, and its files are its own"""
    status = pathlib.Path(f"/proc/{state()['MainPID']}/status").read_text()
    want("capabilities", [line.split()[1] for line in status.splitlines() if line.startswith(("CapEff", "CapBnd"))],
         ["0" * 16] * 2)
    want("account", [line.split()[1] for line in status.splitlines() if line.startswith("Uid:")],
         [str(pwd.getpwnam("glasshouse").pw_uid)])
    want("files", run("stat", "-c", "%a %U %G", str(DATA), str(DATA / "admin.key"), "/etc/glasshouse/glasshouse.env"),
         "750 glasshouse glasshouse\n600 glasshouse glasshouse\n640 root glasshouse")


@test
def code():
    """code with pandas, a figure and a query runs, and its limits are those of control groups"""
    execution = execute("import pandas as pd\nint(pd.Series([40, 2]).sum())")
    want("pandas", [execution["status"], execution["result"], execution["isolation"]], ["completed", 42, "full"])
    execution = execute("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
                        "(await db_query('SELECT 6 * 7 AS n'))[0]['n']")
    want("a query", [execution["status"], execution["result"]], ["completed", 42])
    check("the figure", "image/png" in json.dumps(execution.get("outputs")), execution)
    enforced = json.loads(call(f"/executions/{execution['execution_id']}"))["enforced_by"]
    want("limits", [enforced[limit].split(",")[0] for limit in ("max_memory_mb", "cpu_percent", "max_threads")],
         ["cgroup v2"] * 3)
    shown = run("glasshouse", "run", "-", stdin=None, input='print("hello")').splitlines()
    want("glasshouse run", shown, [f"glasshouse: using the service at {ADDRESS}", "hello"])


@test
def files():
    """code reads an upload, and its files are kept as artifacts"""
    sandbox = create()
    request = urllib.request.Request(f"{ADDRESS}/sandbox/{sandbox}/files/in.txt", b"42", {"Authorization": bearer()},
                                     method="PUT")
    urllib.request.urlopen(request, timeout=300).close()
    execution = run_in(sandbox, "open('artifacts/out.txt', 'w').write('*' * int(open('/data/in.txt').read()))")
    want("status", [execution["status"], execution.get("truncated")], ["completed", None])
    want("artifacts", [(a["path"], a["size"]) for a in execution["artifacts"]], [("out.txt", 42)])


@test
def recorded():
    """a run is recorded, and the pages are served"""
    execution = execute("total = 0\nfor n in range(4):\n    total += n\ntotal", record=True)
    want("result", execution["result"], 6)
    check("steps", execution["recorded_steps"] >= 8, execution)
    run("/usr/lib/glasshouse/python/bin/python", "-c", "import recorder_fast, syscall_batch")
    page = call("/ui/executions/" + execution["execution_id"])
    check("page", "<html" in page and "/ui/assets/" in page, page[:500])


@test
def proof():
    """glasshouse prove finds no attack on the database that succeeds"""
    shown = run("runuser", "-u", "glasshouse", "--", "glasshouse", "prove")
    check("the last line", shown.splitlines()[-1].startswith("No attack succeeded"), shown)


@test
def memory():
    """code that exceeds max_memory_mb is killed with that cause"""
    execution = in_sandbox("x = []\nwhile True: x.append(bytearray(10**6))", max_memory_mb=128)
    want("end", [execution["status"], execution["usage"].get("ended_by")], ["killed", "max_memory_mb"])


@test
def threads():
    """code cannot start more threads than max_threads"""
    execution = in_sandbox("import threading\nstop = threading.Event()\nstarted = 0\ntry:\n    for _ in range(40):\n"
                           "        threading.Thread(target=stop.wait, daemon=True).start(); started += 1\n"
                           "except RuntimeError: pass\nstop.set()\nstarted", max_threads=8)
    want("status", execution["status"], "completed")
    check("threads", 4 <= execution["result"] <= 8, execution["result"])


@test
def cpu():
    """a sandbox gets its CPU share from the kernel"""
    execution = in_sandbox("import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: pass\n"
                           "time.process_time()", cpu_percent=25, max_execution_time=120)
    want("status", execution["status"], "completed")
    used = execution["usage"]["cpu_ms"] / execution["usage"]["wall_ms"]
    check("CPU time per second of a sandbox with 25 percent", used < 0.4, used)


@test
def stopped():
    """a sandbox has a group below the service's own, with its limits, and is stopped between its runs"""
    sandbox = create(max_memory_mb=96, cpu_percent=37)
    want("result", run_in(sandbox, "6 * 7")["result"], 42)
    groups = [path for path in GROUP.glob("glasshouse-[0-9]*/*") if (path / "memory.max").is_file()]
    mine = [path for path in groups if (path / "cpu.max").read_text() == "370000 1000000\n"]
    want("groups with the sandbox's limit", len(mine), 1)
    check("memory limit", 96 << 20 <= int((mine[0] / "memory.max").read_text()) <= 160 << 20,
          (mine[0] / "memory.max").read_text())
    check("tasks", int((mine[0] / "pids.max").read_text()) < 100)
    processes = (mine[0] / "cgroup.procs").read_text().split()
    check("a process", processes)
    for process in processes:
        shown = pathlib.Path(f"/proc/{process}/status").read_text()
        check("stopped", "State:\tT" in shown, shown)
    call(f"/sandbox/{sandbox}", method="DELETE")
    wait_until("the group is removed", lambda: not mine[0].exists() or not (mine[0] / "cgroup.procs").read_text())


@test
def forbidden():
    """forbidden operations fail in a unit with a delegated control group, and the service's files are out of reach"""
    go_test("isolatetest", "^(TestForbiddenOperationsFail|TestServiceFilesAreOutOfReach)$")


@test
def escapes():
    """every second hostile program fails in a unit with a delegated control group"""
    names = sorted(pathlib.Path("/srv/escapes").read_text().split())[::2]  # many are for amd64 only
    shown = go_test("isolatetest", f"^TestEscapes$/^({'|'.join(names)})$")
    failed = set(re.findall("--- PASS: TestEscapes/([^/ ]+)/", shown))
    check("programs that failed to escape", len(failed) >= 30, shown)


@test
def limits():
    """the limits of control groups hold in a unit with a delegated control group"""
    go_test("isolatetest", "^(TestExceededLimitIsNamed|TestGuestIsStoppedBetweenRuns|TestClosedSessionHasNoProcess|"
            "TestZygotesHaveTheRightsOfGuests|TestUnreadSocketsTakeLittleMemory)$")


@test
def groups():
    """the kernel's groups of version 2 are made, joined, weighed and removed"""
    shown = run("/srv/cgroup.test", "-test.v", "-test.timeout=10m",
                env=os.environ | {"GLASSHOUSE_PYTHON": "/usr/lib/glasshouse/python/bin/python", "HOME": "/root"})
    check("the tests were run", "not tested" not in shown, shown)


@test
def restart():
    """restart keeps the history and the key, and leaves nothing behind"""
    before, key = state()["MainPID"], (DATA / "admin.key").read_text()
    executions = len(json.loads(call("/executions?limit=100"))["executions"])
    run("systemctl", "restart", "glasshouse")
    check("another process", state()["MainPID"] not in ("0", before))
    want("key", (DATA / "admin.key").read_text(), key)
    want("executions", len(json.loads(call("/executions?limit=100"))["executions"]), executions)
    want("trees of groups", len(list(GROUP.glob("glasshouse-[0-9]*"))), 1)
    want("result", execute("6 * 7")["result"], 42)


@test
def stop():
    """stop ends every process of the service in time, and says so"""
    run("systemctl", "stop", "glasshouse")
    want("end", [state()["ActiveState"], state()["Result"], state()["ExecMainStatus"]], ["inactive", "success", "0"])
    want("group", GROUP.exists(), False)
    want("processes", run("pgrep", "--uid", "glasshouse", "--list-full", status=None), "")
    run("systemctl", "start", "glasshouse")


@test
def killed():
    """a service that is killed is started again by systemd, without what the killed one left"""
    before = state()
    run("kill", "-KILL", before["MainPID"])
    wait_until("a new process is ready",
               lambda: state()["NRestarts"] != before["NRestarts"] and state()["ActiveState"] == "active", 600)
    want("trees of groups", len(list(GROUP.glob("glasshouse-[0-9]*"))), 1)
    want("level", execute("6 * 7")["isolation"], "full")


@test
def upgrade():
    """an upgrade restarts the service, and keeps its settings and history"""
    with open("/etc/glasshouse/glasshouse.env", "a") as file:
        file.write("GLASSHOUSE_MIN_LEVEL=full\n")
    before, executions = state()["MainPID"], len(json.loads(call("/executions?limit=100"))["executions"])
    run("dpkg", "-i", *glob.glob("/srv/newer/*.deb"))
    check("version", "+newer" in run("dpkg-query", "-W", "-f", "${Version}", "glasshouse"))
    check("another process", state()["MainPID"] not in ("0", before))
    check("settings", "MIN_LEVEL" in pathlib.Path("/etc/glasshouse/glasshouse.env").read_text())
    want("executions", len(json.loads(call("/executions?limit=100"))["executions"]), executions)
    want("level", execute("6 * 7")["isolation"], "full")


@test
def secrets():
    """the journal has no admin key and no sign-in link"""
    link = run("glasshouse", "login-link")
    check("sign-in link", link.startswith(ADDRESS + "/login?token="), link)
    everything = run("journalctl", "--no-pager", "--output=cat")
    check("the journal has the service's lines", "Listening on" in everything)
    for secret in ((DATA / "admin.key").read_text().strip(), "login?token=", link.partition("=")[2]):
        want("secret in the journal", secret in everything, False)


@test
def purge():
    """apt purge stops the service and removes all but the data folder"""
    run("apt-get", "purge", "-y", "glasshouse", "glasshouse-python")
    want("active", run("systemctl", "is-active", "glasshouse", status=None), "inactive")
    want("processes", run("pgrep", "--uid", "glasshouse", "--list-full", status=None), "")
    for path in ("/usr/bin/glasshouse", "/usr/lib/glasshouse", "/etc/glasshouse",
                 "/usr/lib/systemd/system/glasshouse.service",
                 "/etc/systemd/system/multi-user.target.wants/glasshouse.service"):
        want(path, os.path.lexists(path), False)
    check("the data folder is kept", (DATA / "admin.key").exists())
    want("failed units", run("systemctl", "list-units", "--failed", "--no-legend"), "")


def main():
    """Run the tests and return the number of those that failed."""
    failed = 0
    for number, function in enumerate(tests, 1):
        begun = time.monotonic()
        try:
            function()
            problem = ""
        except Exception:  # noqa: BLE001 - the report has each failure
            problem = traceback.format_exc(limit=-2)
            failed += 1
        print(f"{'not ok' if problem else 'ok'} {number} - {function.__doc__.splitlines()[0]} "
              f"({time.monotonic() - begun:.0f} s)")
        for line in problem.splitlines():
            print(f"# {line}")
    if failed:
        print(*[f"# journal: {line}" for line in journal().splitlines()[-100:]], sep="\n")
    print(f"1..{len(tests)}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
