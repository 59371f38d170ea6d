"""Keeps one session over days of chat: variables while the sandbox lives, history and files of notes after that.

Each start of the program is one turn of the chat. Run it several times with GLASSHOUSE_URL and GLASSHOUSE_KEY set.
"""

import json
import pathlib
import tempfile

from glasshouse_sandbox import Client, Gone, NotFound, Sandbox

STATE = pathlib.Path(tempfile.gettempdir(), "glasshouse-chat.json")  # a real chat keeps this with the conversation
LOAD = 'orders = await db_frame("SELECT status, total::float AS total FROM orders")\nturns = 0'
TURN = 'turns += 1\n(turns, round(orders["total"].sum(), 2))'


def resume(client: Client) -> Sandbox:
    """Returns the sandbox of the chat, or a new one with its variables made again."""
    if STATE.exists():
        sandbox = client.sandboxes.get(json.loads(STATE.read_text())["sandbox"])
        try:
            sandbox.variables()
            return sandbox
        except (Gone, NotFound) as reason:
            print("the session has ended:", reason.detail)
    sandbox = client.sandboxes.create(idle_timeout=3600, lifetime=86400)
    sandbox.run(LOAD).raise_for_status()
    STATE.write_text(json.dumps({"sandbox": sandbox.id}))
    return sandbox


with Client() as client:
    turns, total = resume(client).run(TURN).raise_for_status().result
    print(f"turn {turns}: orders of {total}")
