# why: daily
import pandas as pd
log = pd.DataFrame({"at": ["2024-03-01 08:15", "2024-03-01 17:40", "2024-03-02 09:05", "2024-03-04 11:30"],
                    "amount": [5.0, 7.5, 3.0, 10.0]})
log["at"] = pd.to_datetime(log["at"])
log["day"] = log["at"].dt.normalize()
daily = log.groupby("day")["amount"].sum()
days = pd.date_range(daily.index.min(), daily.index.max(), freq="D")
daily = daily.reindex(days, fill_value=0)
weekly = daily.resample("W").sum()
