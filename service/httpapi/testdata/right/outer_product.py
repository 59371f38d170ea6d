# why: table
import numpy as np
heights = np.arange(4.0).reshape(4, 1) + np.zeros(8)
masses = np.ones((4, 8)) * 2
table = (heights * masses).T
print(table.shape)
