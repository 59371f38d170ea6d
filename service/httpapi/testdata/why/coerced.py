# why: total
# line: 7
# words: coerce; missing
# Texts that are no numbers become NaN, which sum skips.
import pandas as pd
rows = db_frame("SELECT id, split_part(content, ';', 2) || split_part(content, ';', 3) AS value FROM raw_data ORDER BY id LIMIT 30")
rows["value"] = pd.to_numeric(rows["value"], errors="coerce")
total = rows["value"].sum()
