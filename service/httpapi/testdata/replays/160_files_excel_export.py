import pandas as pd
from pathlib import Path
import openpyxl

df = pd.DataFrame({"product": ["A", "B", "C"], "units": [10, 20, 15], "price": [2.5, 1.25, 4.0]})
df["revenue"] = df.units * df.price
df.to_excel("sales.xlsx", sheet_name="Q1", index=False)
wb = openpyxl.load_workbook("sales.xlsx")
ws = wb["Q1"]
for row in ws.iter_rows(values_only=True):
    print(row)
print(wb.properties.creator, wb.properties.created)
print(pd.read_excel("sales.xlsx").revenue.sum())
