"""Calls that run at the same time: for asyncio, and in threads for the synchronous client."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Returns the results of calls in their order. After the end of all it raises the error of the first that has
    one."""
    ended = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
    results: list[T] = []
    for each in ended:
        if isinstance(each, BaseException):
            raise each
        results.append(each)
    return results


def in_threads(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Does the same in threads. An interrupt leaves them running: the caller has to end what they wait for."""
    pool = concurrent.futures.ThreadPoolExecutor(len(calls))
    try:
        futures = [pool.submit(call) for call in calls]
        concurrent.futures.wait(futures)
    finally:
        pool.shutdown(wait=False)
    return [future.result() for future in futures]
