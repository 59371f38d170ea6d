"""What the service answers, as dataclasses."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
from collections.abc import Mapping
from typing import Any

from .errors import ExecutionFailed

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Output:
    """A rich output.

    role: "result" (the value of the last expression), "display" or "figure". data: a Jupyter MIME bundle; binary
    types are base64. A part that is too large for an answer is an artifact, which
    `data["application/vnd.glasshouse.artifact+json"]` names by MIME type. summary: one line for a language model.
    """

    role: str
    summary: str
    data: Json
    metadata: Json | None = None

    def image(self) -> bytes | None:
        """Returns the PNG of a figure or an image, or None if there is none in the answer."""
        text = self.data.get("image/png")
        return base64.b64decode(text) if isinstance(text, str) else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Json:
        return self.data


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A file that an execution left in /session/artifacts. size is in bytes; path is below that folder."""

    artifact_id: str
    path: str
    size: int
    sha256: str
    mime_type: str
    url: str
    change: str = ""
    raw: Json = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True)
class Query:
    """A statement that code ran. status: ok, refused, failed, cancelled or captured. duration_ms: milliseconds."""

    query: str
    status: str
    rows: int
    duration_ms: float
    error: str = ""
    raw: Json = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True)
class ExceptionInfo:
    """An exception that the code raised. line is in the code, from 1; 0 if it is not known. notes are those of
    add_note. chain has the exceptions that led to this one, the first one first."""

    type: str
    message: str
    line: int
    traceback: list[Json]
    hint: str = ""
    nearest: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)
    chain: list[Json] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A part of an execution that is another in its replay, or in the execution that it is compared with.

    part: "stdout", "stderr", "result[1].n", "error", "outputs[N].TYPE", "artifacts/PATH", "statements[N].rows" and
    others. line: of a text, the first line that differs, from 1; else 0. original, replay: that line, or the value.
    """

    part: str
    line: int
    original: str
    replay: str


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The first request of a replay that its original did not send. request: its number, from 1. original: what the
    original asked; "" if it asked no more."""

    request: int
    original: str
    replay: str


@dataclasses.dataclass(frozen=True)
class Restored:
    """The earlier executions of a session, which ran again before a replay, or in a fork, or for a rollback.

    executions: how many ran. left_out: those that a limit had ended, which did not run. cpu_ms: milliseconds. sources:
    as in Replay. exact: True if each ended as at first.
    """

    executions: int
    left_out: int
    cpu_ms: float
    sources: list[str]
    exact: bool


@dataclasses.dataclass(frozen=True)
class Replay:
    """How a replay compares with its original.

    of: the id of the original. grade: "identical", "differs" or "diverged", that is, the code sent another request.
    differences: the first twenty. sources: what may differ although the code is the same, such as "network". rows:
    "log", "now", or "mixed": the database of now answered the statements statements_now, by their numbers in the replay
    from 1, at most 100. edited: True if the code or the rows were edited. raw: this part of the answer.
    """

    of: str
    grade: str
    differences: list[Difference]
    diverged: Divergence | None
    sources: list[str]
    rows: str
    statements_now: list[int]
    edited: bool
    restored: Restored | None
    raw: Json = dataclasses.field(repr=False)

    @property
    def identical(self) -> bool:
        """True if the replay did the same."""
        return self.grade == "identical"

    @classmethod
    def from_json(cls, r: Json) -> Replay:
        """Returns the replay of an execution's part."""
        d = r.get("diverged")
        return cls(
            of=r["of"],
            grade=r["grade"],
            differences=[difference(each) for each in r.get("differences") or ()],
            diverged=None if d is None else Divergence(d["request"], d.get("original", ""), d["replay"]),
            sources=list(r.get("sources") or ()),
            rows=r["rows"],
            statements_now=list(r.get("statements_now") or ()),
            edited=r.get("edited", False),
            restored=restored(r.get("restored")),
            raw=r,
        )


@dataclasses.dataclass(frozen=True)
class Execution:
    """One run of code.

    status: completed, failed, timeout, cancelled or killed; `usage["ended_by"]` names the limit that ended it.
    usage: milliseconds of the wait for a slot (queue_ms), from the slot until the guest has received the code
    (start_ms), of the run (wall_ms) and of its CPU time (cpu_ms), and more.
    result: the value of __result__ or of the last expression as JSON, or None. stdout, stderr: what was printed.
    error: "TypeError: ..." or the limit, or None. execution_time: seconds. memory_usage: MB. truncated: how much is
    missing, by part. notes: how values differ from those of the database. recorded_steps: the length of the
    recording, 0 if there is none. tags: as the client sent them. replay: how a replay compares with its original; None
    for other executions. restored: the earlier executions of the session, if this one had to restore them; else None.
    text: the execution in the words that a language model should read. raw: the answer as it
    came.
    """

    execution_id: str
    sandbox_id: str
    status: str
    result: Any
    stdout: str
    stderr: str
    error: str | None
    exception: ExceptionInfo | None
    execution_time: float
    memory_usage: float
    usage: Json
    debug_info: Json
    outputs: list[Output]
    artifacts: list[Artifact]
    artifact_map: dict[str, str]
    queries: list[Query]
    notes: list[str]
    connections: list[Json]
    truncated: dict[str, int]
    isolation: str
    session_reset: bool
    created_at: str
    completed_at: str | None
    recorded_steps: int
    tags: dict[str, str]
    replay: Replay | None
    restored: Restored | None
    text: str
    raw: Json = dataclasses.field(repr=False)

    @property
    def ok(self) -> bool:
        """True if the code completed."""
        return self.status == "completed"

    def raise_for_status(self) -> Execution:
        """Raises ExecutionFailed if the code did not complete; returns the execution otherwise."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    @property
    def images(self) -> list[bytes]:
        """The PNG images among the outputs that are in the answer."""
        return [png for png in (o.image() for o in self.outputs) if png is not None]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Json:
        for output in reversed(self.outputs):
            if output.role == "result":
                return output.data
        return {"text/plain": self.text or json.dumps(self.result)}

    @classmethod
    def from_json(cls, answer: Mapping[str, Any]) -> Execution:
        """Returns the execution of an answer, whose empty parts may be missing."""
        x, replay = answer.get("exception"), answer.get("replay")
        return cls(
            execution_id=answer["execution_id"],
            sandbox_id=answer.get("sandbox_id", ""),
            status=answer["status"],
            result=answer.get("result"),
            stdout=answer.get("stdout", ""),
            stderr=answer.get("stderr", ""),
            error=answer.get("error"),
            exception=None
            if x is None
            else ExceptionInfo(
                x["type"],
                x["message"],
                x["line"],
                x.get("traceback") or [],
                x.get("hint", ""),
                x.get("nearest", ""),
                x.get("notes") or [],
                x.get("chain") or [],
            ),
            execution_time=answer.get("execution_time", 0.0),
            memory_usage=answer.get("memory_usage", 0.0),
            usage=answer.get("usage") or {},
            debug_info=answer.get("debug_info") or {"logs": [], "variables": {}},
            outputs=[output(o) for o in answer.get("outputs") or ()],
            artifacts=[artifact(a) for a in answer.get("artifacts") or ()],
            artifact_map=answer.get("artifact_map") or {},
            queries=[query(q) for q in answer.get("queries") or ()],
            notes=list(answer.get("notes") or ()),
            connections=list(answer.get("connections") or ()),
            truncated=answer.get("truncated") or {},
            isolation=answer.get("isolation", ""),
            session_reset=answer.get("session_reset", False),
            created_at=answer.get("created_at", ""),
            completed_at=answer.get("completed_at"),
            recorded_steps=answer.get("recorded_steps", 0),
            tags=answer.get("tags") or {},
            replay=None if replay is None else Replay.from_json(replay),
            restored=restored(answer.get("restored")),
            text=answer.get("text", ""),
            raw=dict(answer),
        )


def difference(d: Json) -> Difference:
    """Returns a difference of its JSON."""
    return Difference(d["part"], d.get("line", 0), d["original"], d["replay"])


def restored(r: Json | None) -> Restored | None:
    """Returns the restored executions of their JSON; None if there is none."""
    if r is None:
        return None
    return Restored(r["executions"], r.get("left_out", 0), r["cpu_ms"], list(r.get("sources") or ()), r["exact"])


def output(o: Json) -> Output:
    """Returns an output of its JSON."""
    return Output(o.get("role", ""), o.get("summary", ""), o.get("data") or {}, o.get("metadata"))


def artifact(a: Json) -> Artifact:
    """Returns an artifact of its JSON."""
    return Artifact(
        a["artifact_id"], a["path"], a["size"], a["sha256"], a["mime_type"], a["url"], a.get("change", ""), dict(a)
    )


def query(q: Json) -> Query:
    """Returns a statement of its JSON."""
    return Query(q["query"], q["status"], q.get("rows", 0), q.get("duration_ms", 0.0), q.get("error", ""), dict(q))


@dataclasses.dataclass(frozen=True)
class QueryResult:
    """The rows of a statement. rows: one dict for each row. truncated: True if there are more rows."""

    rows: list[Json]
    count: int
    truncated: bool


@dataclasses.dataclass(frozen=True)
class File:
    """An upload, which code reads as /data/PATH. size is in bytes."""

    path: str
    size: int
    sha256: str
    mime_type: str


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of executions. next: pass it as `after` to get the next page; "" on the last page."""

    executions: list[Execution]
    next: str


@dataclasses.dataclass(frozen=True)
class Step:
    """A line of user code that ran under the debugger.

    variables: previews by name, after the line ran. changed: the names that the line set. execution: on the last
    step, the whole execution; None before.
    """

    step: int
    line_number: int
    line_code: str
    variables: dict[str, str]
    changed: list[str]
    execution: Execution | None
    raw: Json = dataclasses.field(repr=False)

    @classmethod
    def from_json(cls, s: Json) -> Step:
        """Returns the step of an event of the debug stream."""
        result = s.get("result") or {}
        state = s.get("state") or {}
        return cls(
            s.get("step", 0),
            s.get("line_number", 0),
            s.get("line_code", ""),
            state.get("variables") or {},
            state.get("changed") or [],
            Execution.from_json(result) if "execution_id" in result else None,
            s,
        )


@dataclasses.dataclass(frozen=True)
class StepPage:
    """A page of the steps of a recorded execution, which has total steps. next: pass it as `first` to get the next
    page; None on the last page."""

    steps: list[Step]
    total: int
    next: int | None


@dataclasses.dataclass(frozen=True)
class Why:
    """Where a value of a recorded execution comes from.

    text: the answer for a model or a person. findings: what may explain a wrong value, the highest "score" first; each
    has "kind", "line_number", "text" and "score": from 70 on, the values of the run show an effect. limits: what the
    recording does not tell; empty if the answer is exact. cell: of a path such as "rows[3]['x']": its "value", the
    steps that made it with their "rows" and "cells" in "from", and where they end, in "ends"; None for a variable. raw:
    the whole answer, with "steps", "earlier" and "queries".
    """

    name: str
    value: str
    type: str
    text: str
    findings: list[Json]
    limits: list[str]
    raw: Json = dataclasses.field(repr=False)
    cell: Json | None = None

    @classmethod
    def from_json(cls, w: Json) -> Why:
        """Returns the answer of the route."""
        return cls(
            w["name"],
            w.get("value", ""),
            w.get("type", ""),
            w["text"],
            w.get("findings") or [],
            w.get("limits") or [],
            w,
            w.get("cell"),
        )


class _Explanation:
    """What a notebook shows of an answer about the SQL of a statement: its text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


@dataclasses.dataclass(frozen=True)
class Stages(_Explanation):
    """The rows after each stage of a statement: each table, join, condition and group.

    text: all of it for a model or a person. blocks: each has "stages", whose "rows_out" is absent if "reason" says why
    it is not known. findings: what may be wrong, the highest "score" first; each has "kind", "line", "text" and
    "evidence". rows: of the result. raw: the whole answer.
    """

    text: str
    rows: int
    blocks: list[Json] = dataclasses.field(repr=False)
    findings: list[Json] = dataclasses.field(repr=False)
    raw: Json = dataclasses.field(repr=False)

    @classmethod
    def from_json(cls, s: Json) -> Stages:
        """Returns the answer of the routes."""
        return cls(s["text"], s["rows"], s["blocks"], s["findings"], s)


@dataclasses.dataclass(frozen=True)
class WhyCell(_Explanation):
    """The rows of tables behind a cell of a result.

    text: all of it for a model or a person. value: the cell as text, or None for NULL. predicate: what identifies its
    row. tables: each has "table", "key", "rows" and the "first" 20. exact: True if the statement over these rows alone
    gives the cell again. raw: the whole answer.
    """

    text: str
    value: str | None
    predicate: str
    tables: list[Json] = dataclasses.field(repr=False)
    exact: bool
    raw: Json = dataclasses.field(repr=False)

    @classmethod
    def from_json(cls, w: Json) -> WhyCell:
        """Returns the answer of the routes."""
        return cls(
            w["text"],
            w.get("value"),
            w["predicate"],
            w["tables"],
            w["check"]["state"] == "same",
            w,
        )


@dataclasses.dataclass(frozen=True)
class WhyNot(_Explanation):
    """Where a statement loses a row.

    text: all of it for a model or a person. missing: whether the result lacks the row; None: not known. lost: the
    stage that loses it, with its "text" and "from_line"; None: none does, as far as it was followed. because: why, such
    as "false", "null" or "no-partner". stages: those up to there, with the "rows" that were followed. raw: the whole
    answer.
    """

    text: str
    missing: bool | None
    lost: Json | None
    because: str
    stages: list[Json] = dataclasses.field(repr=False)
    raw: Json = dataclasses.field(repr=False)

    @classmethod
    def from_json(cls, w: Json) -> WhyNot:
        """Returns the answer of the routes."""
        return cls(
            w["text"],
            w.get("missing"),
            w.get("lost"),
            w.get("because", ""),
            w["stages"],
            w,
        )


@dataclasses.dataclass(frozen=True)
class PendingWrite:
    """A statement that waits for an admin.

    status: pending, applying, unknown, applied, failed or rejected; unknown: whether it was committed is not known.
    row_estimate: the planner's. affected_rows: of an applied one. plan: of PostgreSQL, None if no writing login is
    configured. decided_by: the user whose key decided. reason: why, if that user gave a reason.
    """

    id: str
    sandbox_id: str
    execution_id: str
    user_id: str
    query: str
    parameters: Any
    plan: Any = dataclasses.field(repr=False)
    row_estimate: int
    status: str
    created_at: str
    affected_rows: int
    decided_by: str
    error: str
    reason: str

    @classmethod
    def from_json(cls, w: Json) -> PendingWrite:
        """Returns the write of the routes."""
        return cls(
            w["id"],
            w["sandbox_id"],
            w["execution_id"],
            w["user_id"],
            w["query"],
            w["parameters"],
            w["plan"],
            w["row_estimate"],
            w["status"],
            w["created_at"],
            w.get("affected_rows", 0),
            w.get("decided_by", ""),
            w.get("error", ""),
            w.get("reason", ""),
        )
