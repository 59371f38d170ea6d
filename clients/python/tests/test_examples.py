"""The programs in examples run as they are. Those that need a framework run in the tier `clients`."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples"
EXPECTED = {
    "analysis.py": ["users: ", "plans: {", "figure: plans.png", "KeyError: 'contry'", "country"],
    "chat_session.py": ["turn 1: orders of "],
    "many_runs.py": ["runs: 8 activities: "],
    "review_writes.py": ["'captured': True", "pending admin UPDATE documents", "rejected by admin because only"],
    "streaming.py": ["users ", "  query: SELECT count(*) AS n FROM users", "completed\n", "3 total += n 3"],
    "wrong_result.py": ["revenue: ", "line 4: ", "matched nothing in customers", "fixed: "],
}
NEED_FRAMEWORK = {"langgraph_agent.py"}
IN_A_SANDBOX = {"actions.py"}  # which `glasshouse run` runs; TestFirstMinute does


def run_example(name, service, tmp_path) -> str:
    environ = {
        **os.environ,
        "GLASSHOUSE_URL": str(service._http.base_url),
        "GLASSHOUSE_KEY": service._http.headers["Authorization"].removeprefix("Bearer "),
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, EXAMPLES / name], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EXPECTED)
def test_example_runs(name, service, tmp_path):
    out = run_example(name, service, tmp_path)
    for text in EXPECTED[name]:
        assert text in out, out


def test_chat_goes_on_in_its_session(service, tmp_path):
    turns = [run_example("chat_session.py", service, tmp_path) for _ in range(2)]
    assert [turn.split(":")[0] for turn in turns] == ["turn 1", "turn 2"]
    service.sandboxes.close_all()
    assert "the session has ended" in (out := run_example("chat_session.py", service, tmp_path)) and "turn 1" in out


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED) | NEED_FRAMEWORK | IN_A_SANDBOX
