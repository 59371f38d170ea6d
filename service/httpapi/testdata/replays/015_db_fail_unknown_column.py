import pandas as pd

ok = await db_query("SELECT id, total FROM orders ORDER BY id LIMIT 3")
print(pd.DataFrame(ok))
rows = await db_query("SELECT id, totl\nFROM orders LIMIT 3")
print(rows)
