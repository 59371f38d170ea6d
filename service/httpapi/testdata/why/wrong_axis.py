# why: average
# line: 7
# words: axis; across the columns
# The mean of each row instead of each column.
import pandas as pd
prices = pd.DataFrame({"oak": [10.0, 20.0, 30.0], "steel": [1.0, 2.0, 3.0]})
means = prices.mean(axis=1)
average = means.iloc[0]
