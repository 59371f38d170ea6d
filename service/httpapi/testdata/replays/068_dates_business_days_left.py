import numpy as np
import pandas as pd
from datetime import date

today = date.today()
month_end = (pd.Timestamp(today) + pd.offsets.MonthEnd(0)).date()
year_end = date(today.year, 12, 31)
holidays = [f"{today.year}-12-25", f"{today.year}-12-26", f"{today.year + 1}-01-01"]
print("today", today, "month end", month_end)
left_month = np.busday_count(today, month_end, holidays=holidays)
left_year = np.busday_count(today, year_end, holidays=holidays)
print("business days to month end:", left_month)
print("business days to year end:", left_year)
{"month": int(left_month), "year": int(left_year)}
