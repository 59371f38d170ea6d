# A DataFrame from a query
frame = await db_frame(
    "SELECT date_trunc('month', ordered_at) AS month, status, total FROM orders WHERE total > :least",
    {"least": 100},
)
by_month = frame.pivot_table(index="month", columns="status", values="total", aggfunc="count", fill_value=0)
plan = await db_explain("SELECT * FROM orders WHERE id = :id", {"id": 7})
__result__ = {"rows": len(frame), "months": len(by_month), "estimated_rows": plan["rows"]}
