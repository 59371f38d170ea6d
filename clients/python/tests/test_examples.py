"""The programs in examples run as they are. Those that need a framework run in the tier `clients`."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "clients" / "python" / "examples"
EXPECTED = {
    "analysis.py": ["users: ", "plans: {", "figure: plans.png", "KeyError: 'contry'", "country"],
    "streaming.py": ["users ", "  query: SELECT count(*) AS n FROM users", "completed\n", "3 total += n 3"],
}
NEED_FRAMEWORK = {"langgraph_agent.py"}


@pytest.mark.parametrize("name", EXPECTED)
def test_example_runs(name, service, tmp_path):
    environ = {
        **os.environ,
        "GLASSHOUSE_URL": str(service._http.base_url),
        "GLASSHOUSE_KEY": service._http.headers["Authorization"].removeprefix("Bearer "),
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, EXAMPLES / name], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for text in EXPECTED[name]:
        assert text in done.stdout, done.stdout


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED) | NEED_FRAMEWORK
