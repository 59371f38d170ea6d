# why: left
# line: 7
# words: cuts fractions off: 2.9 becomes 2
# 0.29 * 100 is a little less than 29, and becomes 28.
import numpy as np
share = np.array([0.07, 0.14, 0.29, 0.28, 0.22])
percent = (share * 100).astype(int)
left = 100 - int(percent.sum())
