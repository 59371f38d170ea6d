# why: latest
import pandas as pd
visits = pd.DataFrame({"who": ["a", "b", "a", "c"], "day": ["2024-01-09", "2024-02-11", "2023-12-30", "2024-02-01"],
                       "year": ["2024", "2024", "2023", "2024"]})
latest = visits.groupby("who")["day"].max()
newest = visits["day"].max()
years = sorted(set(visits["year"]))
first_year = min(years)
key = first_year + "-" + visits["who"].iloc[0]
