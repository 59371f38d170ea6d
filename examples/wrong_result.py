"""Finds out why a result is wrong: records the run, then asks where the value comes from.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set.
"""

from glasshouse_sandbox import Client

CODE = """
orders = await db_frame("SELECT id, customer_id, total::float AS total FROM orders ORDER BY id LIMIT 400")
customers = await db_frame("SELECT id, city FROM customers")
merged = orders.merge(customers, on="id", how="left")   # the order's id, not the customer's
revenue = merged.groupby("city")["total"].sum().sum()
round(revenue, 2)
"""

with Client() as client:
    execution = client.run(CODE, record=True).raise_for_status()
    print("revenue:", execution.result)

    why = client.executions.why(execution.execution_id, "revenue")
    for finding in why.findings[:2]:
        print(f"line {finding['line_number']}: {finding['text']}")

    fixed = client.run(CODE.replace('on="id"', 'left_on="customer_id", right_on="id"'), record=True)
    print("fixed:", fixed.result)
