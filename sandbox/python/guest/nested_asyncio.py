"""asyncio for code at the top level, which runs in the event loop of the session only while it awaits.

As in IPython, asyncio.get_event_loop() returns this loop, asyncio.create_task() makes tasks of it, and asyncio.run()
works even while it runs.
"""

import asyncio
import functools
import warnings

_swap_task = getattr(asyncio.tasks, "_swap_current_task", None)
_run, _create_task = asyncio.run, asyncio.create_task  # each session wraps asyncio's own


def provide(event_loop) -> None:
    """Makes asyncio use event_loop(), which returns the open loop of the session, or None in another thread."""
    asyncio.run = asyncio.runners.run = _nestable(_run, event_loop)
    asyncio.create_task = asyncio.tasks.create_task = _creating(_create_task, event_loop)
    with warnings.catch_warnings():  # Python 3.14 deprecates policies, and has nothing in their place
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(_policy(event_loop))


def _policy(event_loop):
    """Returns a policy whose current loop is the session's unless the code has set another that is open."""

    class SessionPolicy(asyncio.DefaultEventLoopPolicy):
        def get_event_loop(self):
            current = getattr(self._local, "_loop", None)  # type: ignore[attr-defined]
            if current is None or current.is_closed():
                event_loop()  # sets it, in the thread of the session
            return super().get_event_loop()

    return SessionPolicy()


def _creating(create_task, event_loop):
    """Returns an asyncio.create_task that works without a running loop: the task begins at the end of the code, or when
    it awaits."""

    @functools.wraps(create_task)
    def create(coro, **options):
        loop = None if asyncio._get_running_loop() else event_loop()
        return create_task(coro, **options) if loop is None else loop.create_task(coro, **options)

    return create


def _nestable(run, event_loop):
    """Returns an asyncio.run that also works while a loop runs, for example under a top-level await. event_loop() gives
    the thread its event loop back, which a plain run takes away."""

    @functools.wraps(run)
    def nested(main, **options):
        outer = asyncio._get_running_loop()
        if outer is None:
            try:
                return run(main, **options)
            finally:
                event_loop()
        task = _swap_task(outer, None) if _swap_task else None
        asyncio._set_running_loop(None)
        try:
            return run(main, **options)
        finally:
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)
            if _swap_task:
                _swap_task(outer, task)

    return nested
