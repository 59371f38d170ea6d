# A column whose name is spelled wrong: the answer names the one that was meant.
orders = db_frame("SELECT status, total::float AS total FROM orders")
by_status = orders.groupby("status").sum()
share = by_status["totals"] / by_status["total"].sum()
share
