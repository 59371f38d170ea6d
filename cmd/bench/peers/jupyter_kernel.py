"""A Jupyter kernel with its own client, which runs 1+1 for each line of stdin.

It prints the nanoseconds from each request until the result and the idle state of the kernel.
"""

import sys
import time

from jupyter_client.manager import start_new_kernel


def once(client) -> int:
    """Return the nanoseconds that one run takes."""
    results = []

    def output(message: dict) -> None:
        if message["msg_type"] == "execute_result":
            results.append(message["content"]["data"]["text/plain"])

    begun = time.perf_counter_ns()
    client.execute_interactive("1+1", output_hook=output, timeout=60)
    took = time.perf_counter_ns() - begun
    if results != ["2"]:
        raise SystemExit(f"the kernel returned {results}, want 2")
    return took


if __name__ == "__main__":
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for _ in sys.stdin:
            print(once(client), flush=True)
    finally:
        manager.shutdown_kernel(now=True)
