"""What both clients share about HTTP: settings, errors and retries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import httpx

from . import errors
from ._operations import Call

DEFAULT_URL = "http://127.0.0.1:8080"
MAX_RETRIES = 5  # of a request that the service did not begin (429, 503)
MAX_RETRY_AFTER = 30.0  # seconds; a longer wait is the caller's decision
MAX_REPEATS = 6  # of a request with an idempotency key whose answer was lost, within 12 s: a service restarts in 3
# A run may take 300 s and wait for a slot before. The service answers or closes the connection by itself.
TIMEOUT = httpx.Timeout(10.0, read=360.0, write=60.0)


def settings(url: str | None, key: str | None) -> dict[str, Any]:
    """Returns the arguments of an httpx client."""
    key = key if key is not None else os.environ.get("GLASSHOUSE_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    base = url if url is not None else os.environ.get("GLASSHOUSE_URL", DEFAULT_URL)
    return {"base_url": base.rstrip("/"), "headers": headers, "timeout": TIMEOUT, "follow_redirects": False}


def request_arguments(call: Call, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns the arguments of httpx's build_request for a call."""
    arguments: dict[str, Any] = {"method": call.method, "url": call.path, "params": dict(call.params) or None}
    arguments["headers"] = dict(headers or {})
    if call.idempotency_key is not None:
        arguments["headers"]["Idempotency-Key"] = call.idempotency_key
    if call.stream:
        arguments["headers"]["Accept"] = "text/event-stream"
    if call.content is not None:
        arguments["content"] = call.content
        arguments["headers"]["Content-Type"] = "application/octet-stream"
    elif call.body is not None:
        arguments["json"] = call.body
    return arguments


def error_of(response: httpx.Response) -> errors.GlasshouseError:
    """Returns the error of a response whose body was read and whose status is not 2xx."""
    try:
        problem = response.json()
    except ValueError:
        problem = {"detail": response.text[:500] or f"HTTP status {response.status_code}"}
    return errors.from_problem(response.status_code, problem, response.headers.get("Retry-After"))


def connection_failed(error: httpx.HTTPError, base_url: httpx.URL) -> errors.ConnectionFailed:
    """Returns the error for a request that got no answer."""
    return errors.ConnectionFailed(
        f"no answer from {base_url}: {error or type(error).__name__}. Is the service running? GLASSHOUSE_URL names it"
    )


def repeat_delay(error: httpx.HTTPError, call: Call, lost: int) -> float | None:
    """Returns how long to wait before a request whose answer was lost is sent again, in seconds, or None if it is not.

    lost: how many answers were lost before. A first attempt that found no service is not repeated.
    """
    was_sent = isinstance(error, (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError))
    was_sent = was_sent and not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    is_repeat = lost > 0 and isinstance(error, httpx.TransportError)
    if call.idempotency_key is None or not (was_sent or is_repeat) or lost >= MAX_REPEATS:
        return None
    return float(min(0.2 * 2**lost, 5.0))


def retry_delay(error: errors.GlasshouseError, attempt: int) -> float | None:
    """Returns how long to wait before the next attempt, in seconds, or None if there is none.

    Only a request that the service refused because it was full is repeated: the code did not start.
    """
    if not isinstance(error, (errors.LimitReached, errors.Full)) or attempt >= MAX_RETRIES:
        return None
    delay = 1.0 if error.retry_after is None else error.retry_after
    return delay if delay <= MAX_RETRY_AFTER else None
