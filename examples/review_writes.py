"""Reviews writes: code of an agent captures an UPDATE, and an admin looks at it and rejects it.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set; the key must be an admin's.
"""

from glasshouse_sandbox import Client

CODE = """
await db_query("UPDATE documents SET processed = true WHERE id = :id", {"id": 1})
"""

with Client() as client, client.sandboxes.create(write_policy="capture") as sandbox:
    print("the code got:", sandbox.run(CODE).raise_for_status().result)

    for write in client.pending_writes.list():
        if write.sandbox_id == sandbox.id:
            print(write.status, write.user_id, write.query, write.parameters)
            decided = client.pending_writes.reject(write.id, reason="only an example")  # `apply` would run it once
            print(decided.status, "by", decided.decided_by, "because", decided.reason)
