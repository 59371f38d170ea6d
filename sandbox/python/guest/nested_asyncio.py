"""asyncio.run inside a loop that runs already."""

import asyncio
import functools

_swap_task = getattr(asyncio.tasks, "_swap_current_task", None)


def nestable(run, event_loop):
    """Returns an asyncio.run that also works while a loop runs, for example under a top-level await.

    event_loop() gives the thread its event loop back, which a plain run takes away.
    """

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
