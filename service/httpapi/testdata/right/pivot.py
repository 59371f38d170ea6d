# why: wide
import pandas as pd
sales = pd.DataFrame({"city": ["Oslo", "Oslo", "Rome", "Rome", "Lima"], "year": [2022, 2023, 2022, 2023, 2023],
                      "units": [5, 7, 3, 9, 4]})
wide = sales.pivot(index="city", columns="year", values="units")
wide = wide.fillna(0).astype(int)
wide["total"] = wide.sum(axis=1)
winner = wide["total"].idxmax()
change = wide[2023] - wide[2022]
