"""Writes the notebook's workbook and its Parquet file: python tables.py FOLDER. It runs outside of a sandbox."""

import pathlib
import sys

import pandas as pd

folder = pathlib.Path(sys.argv[1])
stores = pd.DataFrame({"store": ["Berlin", "Lyon", "Kyiv"], "country": ["DE", "FR", "UA"], "opened": pd.to_datetime(["2019-05-01", "2021-11-15", "2023-02-28"])})
goals = pd.DataFrame({"store": ["Berlin", "Lyon"], "goal": [60.0, 40.0]})
with pd.ExcelWriter(folder / "stores.xlsx") as book:
    stores.to_excel(book, sheet_name="stores", index=False)
    goals.to_excel(book, sheet_name="goals", index=False)

# A sensor's readings every half hour in the night in which daylight saving time begins in Berlin.
at = pd.date_range("2024-03-30 22:00", periods=12, freq="30min", tz="UTC")
pd.DataFrame({"at": at, "sensor": ["a", "b"] * 6, "celsius": [float(n) for n in range(12)]}).to_parquet(folder / "readings.parquet", index=False)
