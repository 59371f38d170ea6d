import pytest
from test_client import NOW

pytest_plugins = ["pytester"]


@pytest.fixture
def run_suite(service, pytester, monkeypatch):
    """Returns a function that runs pytest with a suite of these lines, and with other arguments."""
    monkeypatch.setenv("GLASSHOUSE_KEY", service._http.headers["Authorization"].removeprefix("Bearer "))

    def run(*lines, arguments=()):
        suite = pytester.path / "suite.txt"
        suite.write_text("".join(f"{line}\n" for line in lines))
        url = str(service._http.base_url)
        plugins = ["-p", "glasshouse_sandbox.pytest_plugin", "-p", "no:cacheprovider"]
        return pytester.runpytest(*plugins, "--glasshouse-suite", "suite.txt", "--glasshouse-url", url, *arguments)

    return run


def test_each_line_is_a_test(service, run_suite, pytester):
    pytester.makepyfile(test_other="def test_other(): pass")
    steady, varying = service.run("print('as ever')"), service.run(NOW)
    lines = ["# answers", "", steady.execution_id, f"  {varying.execution_id} # today"]
    result = run_suite(*lines, arguments=["-v"])
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"suite.txt::{each.execution_id} PASSED*" for each in (steady, varying)])
    assert result.ret == 0
    run_suite(*lines, arguments=["test_other.py"]).assert_outcomes(passed=3)
    run_suite(*lines, arguments=["-k", varying.execution_id]).assert_outcomes(passed=1, deselected=1)


def test_a_failure_has_the_differences(service, run_suite):
    steady, varying = service.run("print('as ever')"), service.run(NOW + "\nprint('\\x1b[2J', rows[0]['at'])")
    result = run_suite(steady.execution_id, varying.execution_id, arguments=["--glasshouse-rows", "now"])
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"*replay of {varying.execution_id}*",
            "differs: not all is as in the original (with the rows of now)",
            "  stdout, line 2",
            "    original  \\x1b[[]2J 2*",
            "    replay    \\x1b[[]2J 2*",
            "What may differ although the code is the same: database",
            "The replay is execution *",
        ]
    )
    assert "Traceback" not in result.stdout.str() and result.ret == 1


def test_a_replay_that_diverges_fails(service, run_suite):
    first = service.run(
        "import threading, time\nn = []\nthread = threading.Thread(target=lambda: n.append(time.time_ns()))\n"
        "thread.start()\nthread.join()\ndb_query(f'SELECT {n[0]} AS n')"
    )
    result = run_suite(first.execution_id)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["diverged: *", "  request 1 of the code", "    original  SELECT *"])


def test_what_cannot_be_replayed_fails(run_suite):
    result = run_suite("0123456789abcdef")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no replay: there is no such execution*"])
    result = run_suite("one two")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*suite.txt:1: got 'one two', want one id of an execution on a line"])


def test_a_suite_that_is_not_there(pytester):
    result = pytester.runpytest("-p", "glasshouse_sandbox.pytest_plugin", "--glasshouse-suite", "none.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --glasshouse-suite: there is no file */none.txt"])
