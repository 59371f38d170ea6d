# why: spread
# line: 7
# words: divides by n; n - 1
# numpy's deviation is that of a population, pandas' that of a sample.
import numpy as np
rows = db_frame("SELECT total::float AS total FROM orders ORDER BY id LIMIT 8")
spread = np.std(rows["total"].to_numpy())
