"""The requests of the client, without input and output.

Each operation is a generator: it yields a Call, gets its Reply, and returns its result. The clients drive it, one with
httpx.Client and one with httpx.AsyncClient, so that both have the same behaviour.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote as quote

from . import models
from .models import Json

T = TypeVar("T")
Files = Mapping[str, "str | bytes"]
Edits = Mapping[int, Sequence[Mapping[str, Any]]]  # rows by the number of a statement

MAX_FORKS = 20  # of one call


@dataclasses.dataclass(frozen=True)
class Call:
    """A request. body is JSON unless content has bytes."""

    method: str
    path: str
    body: Any = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    content: bytes | None = None
    stream: bool = False  # the answer is a stream of events
    retry: bool = True  # send it again if the service refuses it because it is full
    idempotency_key: str | None = None  # send it again if the answer is lost: the service runs it once


@dataclasses.dataclass(frozen=True)
class Reply:
    """An answer with a status of 2xx."""

    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


Operation = Generator[Call, Reply, T]

TEXT = {"include": "text"}


def fetch(call: Call) -> Operation[Any]:
    """Returns the JSON of an answer."""
    reply = yield call
    return reply.json()


def run_call(
    sandbox_id: str | None,
    code: str,
    *,
    files: Files | None = None,
    config: Mapping[str, Any] | None = None,
    stream: bool = False,
    idempotency_key: str | None = None,
    **fields: Any,
) -> Call:
    """Returns the call that runs code, in a fresh sandbox if sandbox_id is None. fields: other fields of the body."""
    key = idempotency_key
    if key is not None and not (key and key.isascii() and key.isprintable() and key.strip() == key):
        raise ValueError("idempotency_key: use printable ASCII characters, and no space at its ends")
    body = _body(code, fields)
    if files:
        body["files"] = [_file(path, content) for path, content in files.items()]
    path = "/sandbox/agent/quick-execute"
    if sandbox_id is not None:
        path = f"/sandbox/{sandbox_id}/execute"
    elif config:
        body["config"] = dict(config)
    return Call("POST", path, body, TEXT, stream=stream, idempotency_key=idempotency_key)


def _body(code: str, fields: Mapping[str, Any]) -> Json:
    """Returns the body of a request to run code, with the fields that are not None."""
    given = {name: value for name, value in fields.items() if value is not None}
    return {"code": code} | {n: dict(v) if isinstance(v, Mapping) else v for n, v in given.items()}


def _file(path: str, content: str | bytes) -> Json:
    if isinstance(content, str):
        return {"path": path, "content": content}
    import base64

    return {"path": path, "content_base64": base64.b64encode(content).decode("ascii")}


def run(call: Call) -> Operation[models.Execution]:
    reply = yield call
    return models.Execution.from_json(reply.json())


def query(
    sandbox_id: str | None, sql: str, params: Mapping[str, Any] | None, database: str | None
) -> Operation[models.QueryResult]:
    path = "/database/query" if sandbox_id is None else f"/sandbox/{sandbox_id}/database/query"
    body: Json = {"query": sql, "parameters": dict(params or {})}
    if database is not None:
        body["database"] = database
    answer = yield from fetch(Call("POST", path, body))
    return models.QueryResult(answer["results"], answer["count"], answer["truncated"])


def statement(sql: str, params: Mapping[str, Any] | None, database: str | None) -> Json:
    """Returns the fields of a body with a statement."""
    body: Json = {"sql": sql, "params": dict(params or {})}
    return body if database is None else body | {"database": database}


def past_statement(execution_id: str, number: int) -> str:
    """Returns the path of a statement of an execution."""
    return f"/executions/{quote(execution_id, safe='')}/queries/{number}"


def stages(path: str, body: Json, samples: bool, all: bool) -> Operation[models.Stages]:
    answer = yield from fetch(
        Call("POST", path + "/stages", body | {"samples": samples, "all": all})
    )
    return models.Stages.from_json(answer)


def why_cell(path: str, body: Json, row: int, column: str) -> Operation[models.WhyCell]:
    answer = yield from fetch(
        Call("POST", path + "/why", body | {"row": row, "column": column})
    )
    return models.WhyCell.from_json(answer)


def why_not(
    path: str, body: Json, values: Mapping[str, Any]
) -> Operation[models.WhyNot]:
    answer = yield from fetch(
        Call("POST", path + "/why-not", body | {"values": dict(values)})
    )
    return models.WhyNot.from_json(answer)


def schema(sandbox_id: str | None, database: str | None) -> Operation[Json]:
    path = "/database/schema" if sandbox_id is None else f"/sandbox/{sandbox_id}/database/schema"
    answer = yield from fetch(Call("GET", path, params={} if database is None else {"database": database}))
    result: Json = answer["schema"]
    return result


def create(config: Mapping[str, Any]) -> Operation[Json]:
    answer: Json = yield from fetch(Call("POST", "/sandbox/create", dict(config)))
    return answer


def get_execution(execution_id: str, wait: float) -> Operation[models.Execution]:
    params = dict(TEXT, **({"wait": str(round(wait))} if wait else {}))
    reply = yield Call("GET", f"/executions/{quote(execution_id, safe='')}", params=params)
    return models.Execution.from_json(reply.json())


def list_executions(**filters: Any) -> Operation[models.Page]:
    """filters: parameters of the query. None selects all; a mapping has to be among the texts by name."""
    params = {
        name: [f"{k}:{v}" for k, v in value.items()] if isinstance(value, Mapping) else str(value)
        for name, value in filters.items()
        if value is not None
    }
    answer = yield from fetch(Call("GET", "/executions", params={**params, "include": "record"}))
    return models.Page([models.Execution.from_json(e) for e in answer["executions"]], answer.get("next", ""))


def explain(execution_id: str, budget: int) -> Operation[str]:
    path = f"/executions/{quote(execution_id, safe='')}/explain"
    answer = yield from fetch(Call("GET", path, params={"budget": str(budget)}))
    return str(answer["explanation"])


def steps(execution_id: str, first: int, limit: int, fold: bool) -> Operation[models.StepPage]:
    params = {"from": str(first), "limit": str(limit)} | ({"fold": "comprehensions"} if fold else {})
    answer = yield from fetch(Call("GET", f"/executions/{quote(execution_id, safe='')}/steps", params=params))
    return models.StepPage(
        [models.Step.from_json(s) for s in answer["steps"]], answer["total_steps"], answer.get("next")
    )


def why(execution_id: str, name: str | None, step: int | None, budget: int) -> Operation[models.Why]:
    params = {"name": name, "step": step, "budget": budget}
    path = f"/executions/{quote(execution_id, safe='')}/why"
    answer = yield from fetch(Call("GET", path, params={k: str(v) for k, v in params.items() if v is not None}))
    return models.Why.from_json(answer)


def replay(
    execution_id: str, code: str | None, rows: str, edits: Edits | None, record: bool, environment: str | None
) -> Operation[models.Execution]:
    body: Json = {"rows": rows, "record": record} | ({} if code is None else {"code": code})
    if edits:
        body["edits"] = [{"statement": n, "rows": [dict(row) for row in new]} for n, new in edits.items()]
    if environment is not None:
        body["environment"] = environment
    return (yield from run(Call("POST", f"/executions/{quote(execution_id, safe='')}/replay", body, TEXT)))


def diff(execution_id: str, other: str) -> Operation[list[models.Difference]]:
    path = f"/executions/{quote(execution_id, safe='')}/diff/{quote(other, safe='')}"
    answer = yield from fetch(Call("GET", path))
    return [models.difference(each) for each in answer["differences"]]


@dataclasses.dataclass(frozen=True)
class Fork:
    """A sandbox that the service has made of another one."""

    sandbox_id: str
    restored: models.Restored | None


def fork(sandbox_id: str, count: int, retry: bool = True) -> Operation[list[Fork]]:
    call = Call("POST", f"/sandbox/{quote(sandbox_id, safe='')}/fork", {"count": count}, retry=retry)
    answer = yield from fetch(call)
    return [Fork(each["sandbox_id"], models.restored(each.get("restored"))) for each in answer["sandboxes"]]


def rollback(sandbox_id: str, before: str) -> Operation[models.Execution]:
    path = f"/sandbox/{quote(sandbox_id, safe='')}/rollback"
    return (yield from run(Call("POST", path, {"before": before}, TEXT)))


def pending_writes(status: str | None, user_id: str | None) -> Operation[list[models.PendingWrite]]:
    found: list[models.PendingWrite] = []
    params = {"status": status, "user_id": user_id, "after": None}
    while True:
        call = Call("GET", "/pending-writes", params={k: v for k, v in params.items() if v is not None})
        answer = yield from fetch(call)
        found += [models.PendingWrite.from_json(w) for w in answer["pending_writes"]]
        params["after"] = answer.get("next")
        if not params["after"]:
            return found


def decide(write_id: str, decision: str, reason: str) -> Operation[models.PendingWrite]:
    path = f"/pending-writes/{quote(write_id, safe='')}/{decision}"
    answer = yield from fetch(Call("POST", path, {"reason": reason} if reason else None))
    return models.PendingWrite.from_json(answer)


def resolve(write_id: str, applied: bool, reason: str) -> Operation[models.PendingWrite]:
    path = f"/pending-writes/{quote(write_id, safe='')}/resolve"
    answer = yield from fetch(Call("POST", path, {"applied": applied} | ({"reason": reason} if reason else {})))
    return models.PendingWrite.from_json(answer)


def files(sandbox_id: str) -> Operation[list[models.File]]:
    answer = yield from fetch(Call("GET", f"/sandbox/{sandbox_id}/files"))
    return [_upload(f) for f in answer["files"]]


def write_file(sandbox_id: str, path: str, content: str | bytes) -> Operation[models.File]:
    data = content.encode() if isinstance(content, str) else content
    answer = yield from fetch(Call("PUT", f"/sandbox/{sandbox_id}/files/{quote(path)}", content=data))
    return _upload(answer["files"][0])


def _upload(f: Json) -> models.File:
    return models.File(f["path"], f["size"], f["sha256"], f["mime_type"])


def read(path: str) -> Operation[bytes]:
    reply = yield Call("GET", path)
    return reply.body


def artifacts(sandbox_id: str) -> Operation[list[models.Artifact]]:
    found: list[models.Artifact] = []
    after = ""
    while True:
        params = {"after": after} if after else {}
        answer = yield from fetch(Call("GET", f"/sandbox/{sandbox_id}/artifacts", params=params))
        found += [models.artifact(a) for a in answer["artifacts"]]
        after = answer.get("next", "")
        if not after:
            return found


def complete(sandbox_id: str, code: str, cursor: int | None) -> Operation[Json]:
    body = {"code": code, "cursor": len(code) if cursor is None else cursor}
    answer: Json = yield from fetch(Call("POST", f"/sandbox/{sandbox_id}/complete", body))
    return answer


def debug_call(sandbox_id: str, code: str, **fields: Any) -> Call:
    return Call("POST", f"/sandbox/{sandbox_id}/debug", _body(code, fields), stream=True)


@dataclasses.dataclass
class Event:
    """A server-sent event."""

    name: str = ""
    id: str = ""
    data: str = ""


class EventReader:
    """Reads server-sent events from lines."""

    def __init__(self) -> None:
        self._event = Event()
        self._data: list[str] = []

    def line(self, line: str) -> Event | None:
        """Takes the next line and returns the event that it ends."""
        if line == "":
            event, self._event = self._event, Event()
            event.data, self._data = "\n".join(self._data), []
            return event if event.data else None
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event.name = value
        elif name == "id":
            self._event.id = value
        return None
