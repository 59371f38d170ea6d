// Examples for the playground. All of them run on the demo data.

export interface Example {
  title: string;
  shows: string;
  code: string;
  capture?: boolean; // it needs a session that captures writes
}

export const examples: Example[] = [
  {
    title: "Plot revenue by month",
    shows: "A query as a data frame, and a figure, which is shown without plt.show().",
    code: `import matplotlib.pyplot as plt

frame = await db_frame("""
    SELECT date_trunc('month', ordered_at)::date AS month, sum(total)::float8 AS revenue
    FROM orders WHERE status <> 'cancelled' GROUP BY 1 ORDER BY 1""")
plt.figure(figsize=(8, 3))
plt.bar(frame["month"].astype(str), frame["revenue"])
plt.xticks(rotation=60)
plt.title("Revenue by month")
plt.tight_layout()
`,
  },
  {
    title: "List the best customers",
    shows: "Rows as a table. The value of the last expression is the result.",
    code: `await db_query("""
    SELECT name, orders, revenue FROM customer_revenue
    ORDER BY revenue DESC LIMIT 10""")
`,
  },
  {
    title: "Work with a data frame",
    shows: "pandas on the rows of a query. The variables stay for the next run of the session.",
    code: `orders = await db_frame("SELECT status, total::float8 AS total, ordered_at FROM orders")
by_status = orders.groupby("status")["total"].agg(["count", "mean", "sum"]).round(2)
by_status.sort_values("sum", ascending=False)
`,
  },
  {
    title: "Watch the output arrive",
    shows: "Text while it is printed, with a progress bar. Stop ends the run at once.",
    code: `import time
from tqdm import tqdm

for n in tqdm(range(40)):
    if n % 10 == 0:
        print(f"batch {n // 10 + 1} of 4", flush=True)
    time.sleep(0.1)
`,
  },
  {
    title: "Misspell a column",
    shows: "An error with the line at which it happened and a hint: here the name that was probably meant.",
    code: `rows = await db_query("SELECT id, stauts, total FROM orders LIMIT 5")
rows
`,
  },
  {
    title: "Capture a write",
    shows: "A change of the database that waits until an admin applies it. It needs a session that captures writes.",
    capture: true,
    code: `await db_query("UPDATE raw_data SET content = :text WHERE id = :id", {"id": 7, "text": "checked"})
`,
  },
  {
    title: "Try to reach the network",
    shows: "A refused connection: a session has no network unless it was created with one.",
    code: `import requests

requests.get("https://example.com", timeout=5)
`,
  },
  {
    title: "Leave a file",
    shows: "A file in /session/artifacts is kept after the run, and listed under Files.",
    code: `frame = await db_frame("SELECT id, name, price FROM products ORDER BY price DESC")
frame.to_csv("/session/artifacts/products.csv", index=False)
print(f"{len(frame)} products")
`,
  },
];
