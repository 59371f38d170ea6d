"""asyncio.run within a loop that runs already."""

import asyncio
import functools

_swap_task = getattr(asyncio.tasks, "_swap_current_task", None)


def run_within(run, event_loop):
    """asyncio.run that also works where a loop runs already, as under a top-level await,
    and leaves the thread its event loop."""

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
