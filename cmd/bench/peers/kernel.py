"""A Jupyter kernel with its own client, in which 1+1 is run for each line of stdin.

For each, the answer is a line with how long it took, in nanoseconds, until the result and the
kernel's idle state were there.
"""

import sys
import time

from jupyter_client.manager import start_new_kernel


def once(client) -> int:
    """How long one run takes."""
    results = []

    def output(message: dict) -> None:
        if message["msg_type"] == "execute_result":
            results.append(message["content"]["data"]["text/plain"])

    begun = time.perf_counter_ns()
    client.execute_interactive("1+1", output_hook=output, timeout=60)
    took = time.perf_counter_ns() - begun
    if results != ["2"]:
        raise SystemExit(f"the kernel said {results}")
    return took


if __name__ == "__main__":
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for _ in sys.stdin:
            print(once(client), flush=True)
    finally:
        manager.shutdown_kernel(now=True)
