"""The errors of the client: one class for each problem type of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Execution


class GlasshouseError(Exception):
    """The service did not do what was asked. `detail` says what happened and what to do.

    status: the HTTP status; 0 if there was no answer. type: the problem type, such as "not-found". request_id: names
    the request in the service's log. fields: the fields that are wrong, with a message each. retry_after: seconds, or
    None.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        type: str = "",
        request_id: str = "",
        fields: dict[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.type = type
        self.request_id = request_id
        self.fields = fields or {}
        self.retry_after = retry_after


class ConnectionFailed(GlasshouseError):
    """The service cannot be reached, or the connection broke."""


class InvalidInput(GlasshouseError):
    """The request has a wrong field (422, or 400 for malformed JSON). `fields` names it."""


class TooLarge(GlasshouseError):
    """A body or a file is too large (413)."""


class Unauthorized(GlasshouseError):
    """There is no key, or it was revoked or has expired (401)."""


class Forbidden(GlasshouseError):
    """The key's role does not allow this (403)."""


class NotFound(GlasshouseError):
    """There is no such thing, or it is not the caller's (404)."""


class Busy(GlasshouseError):
    """The sandbox runs other code now (409)."""


class NotConfigured(GlasshouseError):
    """The operator has not configured what this needs (409). A retry does not help."""


class Gone(GlasshouseError):
    """The sandbox has ended, or the thing was deleted (410)."""


class QueryRefused(GlasshouseError):
    """The database refused the statement, or it failed (422)."""


class LimitReached(GlasshouseError):
    """A limit of the key is used up (429). `retry_after` says when to try again."""


class Full(GlasshouseError):
    """No slot became free (503). `retry_after` says when to try again."""


class Unavailable(GlasshouseError):
    """A database of the service is down (503)."""


class InternalError(GlasshouseError):
    """The service failed (500). Its log has the error under `request_id`."""


class ExecutionFailed(GlasshouseError):
    """The code did not complete. Only `Execution.raise_for_status` raises this. `execution` is the execution."""

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution.text or execution.error or execution.status, type="execution-failed")
        self.execution = execution


_BY_TYPE: dict[str, type[GlasshouseError]] = {
    "invalid-input": InvalidInput,
    "malformed": InvalidInput,
    "too-large": TooLarge,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not-found": NotFound,
    "method-not-allowed": InvalidInput,
    "busy": Busy,
    "not-configured": NotConfigured,
    "gone": Gone,
    "query-refused": QueryRefused,
    "full": Full,
    "limit-reached": LimitReached,
    "unavailable": Unavailable,
    "internal-error": InternalError,
}


def from_problem(status: int, problem: Any, retry_after: str | None = None) -> GlasshouseError:
    """Returns the error for the body of an answer whose status is not 2xx."""
    if not isinstance(problem, dict):
        problem = {}
    kind = str(problem.get("type", "")).rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    fields: dict[str, str] = {}
    for each in problem.get("errors") or ():
        if isinstance(each, dict):
            fields[str(each.get("field", ""))] = str(each.get("message", ""))
    try:
        seconds = None if retry_after is None else float(retry_after)
    except ValueError:
        seconds = None
    return _BY_TYPE.get(kind, GlasshouseError)(
        str(problem.get("detail") or problem.get("title") or f"HTTP status {status}"),
        status=status,
        type=kind,
        request_id=str(problem.get("request_id", "")),
        fields=fields,
        retry_after=seconds,
    )
