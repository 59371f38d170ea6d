# why: squares
# line: 7
# words: computed from 50 values (-32183 to 31289)
# The squares do not fit.
import numpy as np
rows = db_frame("SELECT views FROM articles ORDER BY id LIMIT 50")
views = rows["views"].to_numpy().astype(np.int16)
squares = int((views * views).sum())
