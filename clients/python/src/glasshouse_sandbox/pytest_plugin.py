"""A plugin of pytest that replays executions, so that a project's tests say whether old answers can be reproduced.

    pytest --glasshouse-suite answers.txt --glasshouse-url http://127.0.0.1:8080

The file has the id of an execution on each line; a comment begins with #. Each line is a test, which fails with the
differences unless the replay is identical. The key is in GLASSHOUSE_KEY. Without paths of other tests, only the suite
runs. pytest finds the plugin if the package is installed.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from . import Client
from .errors import GlasshouseError
from .models import Execution, Replay

_client = pytest.StashKey[Client]()
_suite = pytest.StashKey[pathlib.Path]()

SUMMARIES = {
    "identical": "identical",
    "differs": "differs: not all is as in the original",
    "diverged": "diverged: the code sent another request than the original",
}

ROWS = {"now": " (with the rows of now)", "mixed": " (with some rows of now)"}


class NotIdentical(Exception):
    """The replay of an execution is not identical with it."""

    def __init__(self, execution: Execution, replay: Replay) -> None:
        super().__init__(describe(replay) + f"\nThe replay is execution {execution.execution_id}.")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("glasshouse", "replays of executions of Glasshouse")
    group.addoption(
        "--glasshouse-suite", metavar="FILE", help="replay the executions whose ids are the lines of this file"
    )
    group.addoption(
        "--glasshouse-url", metavar="URL", help="the service; by default GLASSHOUSE_URL. The key is GLASSHOUSE_KEY"
    )
    group.addoption(
        "--glasshouse-rows",
        choices=("log", "now"),
        default="log",
        help="log: the rows that the executions got; now: rows from the database, to know whether answers still hold",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Adds the file of the suite to the paths that pytest collects, or replaces paths that nobody gave."""
    name = config.getoption("glasshouse_suite")
    if name is None:
        return
    path = pathlib.Path(os.path.abspath(config.invocation_params.dir / name))
    if not path.is_file():
        raise pytest.UsageError(f"--glasshouse-suite: there is no file {path}")
    config.stash[_suite] = path
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(path)]
    elif str(path) not in config.args:
        config.args.append(str(path))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Closes the client."""
    client = config.stash.get(_client, None)
    if client is not None:
        client.close()


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> SuiteFile | None:
    """Returns the collector of the suite for its file."""
    if file_path != parent.config.stash.get(_suite, None):
        return None
    collector: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
    return collector


class SuiteFile(pytest.File):
    """The file of a suite."""

    def collect(self) -> Iterator[ReplayItem]:
        """Yields a test for each line with an id."""
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            fields = line.partition("#")[0].split()
            if len(fields) > 1:
                raise self.CollectError(f"{self.path}:{number}: got {line!r}, want one id of an execution on a line")
            if fields:
                item: ReplayItem = ReplayItem.from_parent(self, name=fields[0])
                item.line = number
                yield item


class ReplayItem(pytest.Item):
    """A test that replays one execution."""

    line = 0  # of the file, from 1

    def runtest(self) -> None:
        """Replays the execution."""
        config = self.config
        if _client not in config.stash:
            config.stash[_client] = Client(config.getoption("glasshouse_url"))
        again = config.stash[_client].executions.replay(self.name, rows=config.getoption("glasshouse_rows"))
        if again.replay is None:
            raise GlasshouseError("the service answers without a comparison: it is of another version")
        if not again.replay.identical:
            raise NotIdentical(again, again.replay)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Returns the differences, or the service's error, without a traceback."""
        if isinstance(excinfo.value, NotIdentical):
            return str(excinfo.value)
        if isinstance(excinfo.value, GlasshouseError):
            return f"no replay: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[pathlib.Path, int, str]:
        """Returns the place of the test."""
        return self.path, self.line - 1, f"replay of {self.name}"


def describe(replay: Replay) -> str:
    """Returns what a replay says about its original, in lines as `glasshouse replay` prints them."""
    lines = [SUMMARIES.get(replay.grade, replay.grade) + ROWS.get(replay.rows, "")]
    for d in replay.differences:
        lines += _pair(f"{d.part}, line {d.line}" if d.line else d.part, d.original, d.replay)
    if replay.diverged is not None:
        asked = replay.diverged.original or "(no more requests)"
        lines += _pair(f"request {replay.diverged.request} of the code", asked, replay.diverged.replay)
    if replay.sources:
        lines.append("What may differ although the code is the same: " + ", ".join(replay.sources))
    if replay.restored is not None and not replay.restored.exact:
        lines.append("Earlier executions of the session did not end as at first.")
    return "\n".join(lines)


def _pair(part: str, original: str, replay: str) -> list[str]:
    return [f"  {_printable(part)}", f"    original  {_printable(original)}", f"    replay    {_printable(replay)}"]


def _printable(text: str) -> str:
    """Returns a text on one line. A terminal would obey control characters of hostile code."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "(empty)"
