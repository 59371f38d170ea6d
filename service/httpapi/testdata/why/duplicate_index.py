# why: total
# line: 8
# words: rows: rows 12, bonus 12 -> 38
# Two labels are equal, so the sum has each pair of them.
import pandas as pd
rows = db_frame("SELECT city, credit_limit::float AS credit FROM customers ORDER BY id LIMIT 12").set_index("city")
bonus = pd.Series(10.0, index=rows.index[::-1])
both = rows["credit"] + bonus
total = both.sum()
