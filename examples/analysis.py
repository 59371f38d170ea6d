"""Analyses a database in a session, saves a figure, and shows what a failure tells.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set.
"""

import pathlib
import tempfile

from glasshouse_sandbox import Client

LOAD = """
import pandas as pd
rows = await db_query("SELECT country, plan FROM users")
users = pd.DataFrame(rows)
len(users)
"""
PLOT = """
import matplotlib.pyplot as plt
users["plan"].value_counts().plot.bar()
users["plan"].value_counts().to_dict()
"""

with Client() as client, client.sandboxes.create(max_execution_time=60) as sandbox:
    print("users:", sandbox.run(LOAD).raise_for_status().result)

    execution = sandbox.run(PLOT).raise_for_status()  # `users` is still there
    figure = pathlib.Path(tempfile.gettempdir(), "plans.png")
    figure.write_bytes(execution.images[0])
    print("plans:", execution.result, "figure:", figure.name)

    failed = sandbox.run("users['contry'].value_counts()")
    print(failed.text)  # the error, a hint, and the variables: give this to the model
