# Exercises in pandas, run cell by cell in one session. The annotations below a cell's code are its
# complete outcome; any other outcome is an error:
#
#   # -> JSON               the result; has: JSON    some of its fields
#   # stdout: TEXT          a line that is printed
#   # stderr: TEXT          text that stderr contains
#   # shown: TYPES          a rich output's MIME types without text/plain, sorted, in the outputs' order
#   # left: PATH TYPE       an artifact that is new; changed: PATH TYPE one that has changed
#   # fails: TYPE at LINE: TEXT

# %% 1. Read a CSV file
import numpy as np
import pandas as pd

sales = pd.read_csv("/data/sales.csv", parse_dates=["day"])
[len(sales), list(sales.columns), int(sales["units"].isna().sum()), sales["day"].max()]
# -> [12, ["day", "store", "product", "units", "price"], 1, "2024-02-29T00:00:00"]

# %% 2. Read every sheet of a workbook
book = pd.read_excel("/data/stores.xlsx", sheet_name=None)
stores, goals = book["stores"], book["goals"]
{name: list(sheet.shape) for name, sheet in book.items()} | {"dated": str(stores["opened"].dt.year.tolist())}
# -> {"stores": [3, 3], "goals": [2, 2], "dated": "[2019, 2021, 2023]"}

# %% 3. Read some columns of a Parquet file
readings = pd.read_parquet("/data/readings.parquet", columns=["at", "celsius"])
[len(readings), str(readings["at"].dt.tz), readings["celsius"].sum()]
# -> [12, "UTC", 66.0]

# %% 4. A small file in pieces, with types and missing marks
import io

text = io.StringIO("id;amount\n007;1.234,50\n008;n/a\n009;2,25\n")
pieces = list(pd.read_csv(text, sep=";", decimal=",", thousands=".", na_values="n/a", dtype={"id": str}, chunksize=2))
whole = pd.concat(pieces)
[len(pieces), whole["id"].tolist(), whole["amount"].sum()]
# -> [2, ["007", "008", "009"], 1236.75]

# %% 5. Describe
about = sales["units"].describe()
[about["count"], round(about["mean"], 4), about["min"], about["50%"], about["max"]]
# -> [11.0, 4.4545, 1.0, 4.0, 10.0]

# %% 6. A column made of others
sales = sales.assign(revenue=lambda d: (d["units"] * d["price"]).round(2))
sales["revenue"].sum().round(2)
# -> 133.6

# %% 7. Group and sum
sales.groupby("store")["revenue"].sum().round(2).to_dict()
# -> {"Berlin": 67.0, "Lyon": 30.6, "Osaka": 36.0}

# %% 8. Several sums with names of their own
summed = sales.groupby("product").agg(orders=("units", "count"), most=("units", "max"), stores=("store", "nunique"))
summed.to_dict("index")
# -> {"coffee": {"orders": 4, "most": 6.0, "stores": 3}, "tea": {"orders": 7, "most": 10.0, "stores": 3}}

# %% 9. Where the most is, and how often each store comes
top = sales.loc[sales["units"].idxmax()]
[top["store"], top["day"], sales["store"].value_counts().to_dict()]
# -> ["Osaka", "2024-01-08T00:00:00", {"Berlin": 5, "Lyon": 4, "Osaka": 3}]

# %% 10. Each row beside its group
sales["share"] = sales["revenue"] / sales.groupby("store")["revenue"].transform("sum")
[round(x, 3) for x in sales.loc[sales["store"] == "Osaka", "share"].dropna()]
# -> [0.556, 0.444]

# %% 11. The best two of each group
best = sales.sort_values("revenue", ascending=False).groupby("store").head(2)
best.groupby("store")["revenue"].apply(list).to_dict()
# -> {"Berlin": [24.0, 17.5], "Lyon": [19.5, 4.8], "Osaka": [20.0, 16.0]}

# %% 12. Merge, and tell what had no partner
joined = sales[["store", "revenue"]].merge(stores, on="store", how="outer", indicator=True, validate="many_to_one")
joined["_merge"].value_counts().sort_index().to_dict()
# -> {"left_only": 3, "right_only": 1, "both": 9}

# %% 13. Merge with what was last known
rates = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-02-01"]), "rate": [1.09, 1.08]})
dated = pd.merge_asof(sales.sort_values("day"), rates, on="day")
dated.groupby("rate").size().to_dict()
# -> {"1.08": 4, "1.09": 8}

# %% 14. Put together, without what is there twice
twice = pd.concat([sales, sales.head(3)], ignore_index=True)
[len(twice), int(twice.duplicated().sum()), len(twice.drop_duplicates())]
# -> [15, 3, 12]

# %% 15. Pivot with sums at the edges
table = sales.pivot_table(index="store", columns="product", values="units", aggfunc="sum", margins=True)
table.loc["All"].to_dict() | {"Lyon's tea": table.loc["Lyon", "tea"]}
# -> {"coffee": 14.0, "tea": 35.0, "All": 49.0, "Lyon's tea": 3.0}

# %% 16. And back again: melt
wide = pd.DataFrame({"name": ["x", "y"], "2023": [1, 2], "2024": [3, 4]})
long = wide.melt(id_vars="name", var_name="year", value_name="n").sort_values(["name", "year"])
long.to_dict("list")
# -> {"name": ["x", "x", "y", "y"], "year": ["2023", "2024", "2023", "2024"], "n": [1, 3, 2, 4]}

# %% 17. Cross table with shares
pd.crosstab(sales["store"], sales["product"], normalize="index").round(2).to_dict("index")
# -> {"Berlin": {"coffee": 0.4, "tea": 0.6}, "Lyon": {"coffee": 0.5, "tea": 0.5}, "Osaka": {"coffee": 0.33, "tea": 0.67}}

# %% 18. An index of two levels
deep = sales.set_index(["store", "product"]).sort_index()
[deep.loc[("Lyon", "tea"), "units"].tolist(), len(deep.xs("coffee", level="product")), deep.index.nlevels]
# -> [[1.0, 2.0], 5, 2]

# %% 19. Levels to columns and back
counts = sales.groupby(["store", "product"]).size().unstack(fill_value=0)
[counts.to_numpy().tolist(), counts.stack().loc[("Osaka", "tea")].item()]
# -> [[[2, 3], [2, 2], [1, 2]], 2]

# %% 20. Columns of two levels
both = sales.groupby("store")[["units", "revenue"]].agg(["sum", "max"])
both.columns = ["_".join(pair) for pair in both.columns]
both.loc["Osaka"].to_dict()
# -> {"units_sum": 18.0, "units_max": 10.0, "revenue_sum": 36.0, "revenue_max": 20.0}

# %% 21. Resample days to weeks
weekly = sales.set_index("day").resample("W")["units"].sum()
[len(weekly), weekly.iloc[0], weekly.index[0], weekly[weekly > 0].tolist()]
# -> [9, 15.0, "2024-01-07T00:00:00", [15.0, 12.0, 14.0, 1.0, 7.0]]

# %% 22. Months, by their names
by_month = sales.groupby(sales["day"].dt.month_name())["revenue"].sum().round(2)
by_month.to_dict()
# -> {"February": 61.4, "January": 72.2}

# %% 23. Rolling and expanding windows
line = pd.Series([1.0, 2.0, 6.0, 3.0, 8.0])
[line.rolling(3).mean().dropna().round(2).tolist(), line.rolling(2, min_periods=1).max().tolist(), line.expanding().sum().tolist()]
# -> [[3.0, 3.67, 5.67], [1.0, 2.0, 6.0, 6.0, 8.0], [1.0, 3.0, 9.0, 12.0, 20.0]]

# %% 24. A window of time
quick = pd.Series(1, index=pd.to_datetime(["2024-01-01 10:00", "2024-01-01 10:20", "2024-01-01 11:30"]))
[quick.rolling("1h").sum().tolist(), line.ewm(alpha=0.5, adjust=False).mean().round(3).tolist()]
# -> [[1.0, 2.0, 1.0], [1.0, 1.5, 3.75, 3.375, 5.688]]

# %% 25. Window functions: before, difference, rank and running sum of each group
run = pd.DataFrame({"k": list("aabab"), "v": [3, 1, 5, 2, 4]})
group = run.groupby("k")["v"]
run = run.assign(before=group.shift().astype("Int64"), step=group.diff().fillna(0).astype(int), place=group.rank().astype(int), total=group.cumsum(), row=group.cumcount() + 1)
run.drop(columns=["k", "v", "before"]).to_dict("list") | {"before": run["before"].fillna(-1).tolist()}
# -> {"step": [0, -2, 0, 1, -1], "place": [3, 1, 2, 2, 1], "total": [3, 4, 5, 6, 9], "row": [1, 2, 1, 3, 2], "before": [-1, 3, -1, 1, 5]}

# %% 26. Text: split, extract, replace, pad
people = pd.Series(["Ada Lovelace <ada@example.org>", "  Grace Hopper", None])
parts = people.str.extract(r"(?P<first>\w+) (?P<last>\w+)(?: <(?P<mail>[^>]+)>)?")
[parts["mail"].fillna("?").tolist(), people.str.strip().str.split().str.len().fillna(0).astype(int).tolist(), parts["last"].str.upper().str.slice(0, 3).str.zfill(5).fillna("").tolist()]
# -> [["ada@example.org", "?", "?"], [3, 2, 0], ["00LOV", "00HOP", ""]]

# %% 27. Text in other scripts
words = pd.Series(["straße", "ÉCOLE", "東京", "🙂 ok"])
[words.str.casefold().tolist(), words.str.len().tolist(), words.str.contains("[一-龯]").tolist()]
# -> [["strasse", "école", "東京", "🙂 ok"], [6, 5, 2, 4], [false, false, true, false]]

# %% 28. Categories in an order of their own
size = pd.Series(["M", "S", "L", "S"]).astype(pd.CategoricalDtype(["S", "M", "L"], ordered=True))
[size.sort_values().tolist(), size.max(), (size > "S").tolist(), size.value_counts().sort_index().to_dict()]
# -> [["S", "S", "M", "L"], "L", [true, false, true, false], {"S": 2, "M": 1, "L": 1}]

# %% 29. Cut into bins
ages = pd.Series([3, 17, 18, 40, 65, 90])
kinds = pd.cut(ages, [0, 18, 65, 120], right=False, labels=["child", "adult", "senior"])
[kinds.tolist(), pd.qcut(ages, 3, labels=False).tolist()]
# -> [["child", "child", "adult", "adult", "senior", "senior"], [0, 0, 1, 1, 2, 2]]

# %% 30. What is missing
gaps = pd.DataFrame({"a": [1.0, None, None, 4.0], "b": ["x", None, "y", None]})
[gaps.isna().sum().to_dict(), gaps["a"].interpolate().tolist(), gaps["a"].ffill(limit=1).fillna(-1).tolist(), len(gaps.dropna()), gaps["b"].fillna("?").tolist()]
# -> [{"a": 2, "b": 2}, [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, -1.0, 4.0], 1, ["x", "?", "y", "?"]]

# %% 31. Whole numbers and truth values that may be missing
n = pd.array([1, None, 3], dtype="Int64")
[int(n.sum()), (n > 1).fillna(False).tolist(), pd.Series(n).convert_dtypes().dtype.name, pd.isna(n[1])]
# -> [4, [false, false, true], "Int64", true]

# %% 32. Time zones: a night without its third hour
local = readings.assign(berlin=readings["at"].dt.tz_convert("Europe/Berlin"))
hours = local["berlin"].dt.strftime("%H:%M").tolist()
[hours[5:8], len(set(hours)) == len(hours), local["berlin"].iloc[-1], (local["berlin"].iloc[6] - local["berlin"].iloc[5]).total_seconds()]
# -> [["01:30", "03:00", "03:30"], true, "2024-03-31T05:30:00+02:00", 1800.0]

# %% 33. A time that is not there, and one that is there twice
odd = pd.to_datetime(pd.Series(["2024-03-31 02:30", "2024-10-27 02:30"]))
[odd.iloc[:1].dt.tz_localize("Europe/Berlin", nonexistent="shift_forward").iloc[0], odd.iloc[1:].dt.tz_localize("Europe/Berlin", ambiguous="NaT").isna().all()]
# -> ["2024-03-31T03:00:00+02:00", true]

# %% 34. Periods, working days, quarters
days = pd.date_range("2024-02-26", "2024-03-05", freq="B")
[len(days), days[-1].day_name(), str(pd.Period("2024-02").end_time.date()), pd.Timestamp("2024-05-17").quarter, str(pd.Timestamp("2024-01-31") + pd.DateOffset(months=1))[:10]]
# -> [7, "Tuesday", "2024-02-29", 2, "2024-02-29"]

# %% 35. Spans of time
late = pd.to_timedelta(["90min", "1 day 02:00:00"])
[late.total_seconds().tolist(), (pd.Timestamp("2024-03-01") - pd.Timestamp("2024-02-01")).days, datetime(2024, 1, 1) + timedelta(days=60)]
# -> [[5400.0, 93600.0], 29, "2024-03-01T00:00:00"]

# %% 36. Nested JSON to a table
orders = [{"id": 1, "who": {"name": "Ada"}, "items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}]}, {"id": 2, "who": {"name": "Alan"}, "items": []}]
flat = pd.json_normalize(orders, "items", ["id", ["who", "name"]])
flat.to_dict("list")
# -> {"sku": ["a", "b"], "n": [2, 1], "id": [1, 1], "who.name": ["Ada", "Ada"]}

# %% 37. Lists to rows
tags = pd.DataFrame({"id": [1, 2, 3], "tags": [["x", "y"], [], ["x"]]}).explode("tags")
[len(tags), tags["tags"].value_counts().to_dict()]
# -> [4, {"x": 2, "y": 1}]

# %% 38. Choose by conditions
grade = np.select([sales["revenue"] >= 20, sales["revenue"] >= 10], ["high", "middle"], "low")
[pd.Series(grade).value_counts().sort_index().to_dict(), sales.query("store == 'Lyon' and units > 1").index.tolist(), int(sales.eval("units * 2").max())]
# -> [{"high": 2, "low": 6, "middle": 4}, [3, 7], 20]

# %% 39. A straight line through points
x = np.arange(10.0)
slope, start = np.polyfit(x, 3 * x + 2, 1)
both = pd.DataFrame({"x": x, "y": 3 * x + 2, "z": -x})
[round(slope, 6), round(start, 6), both.corr().round(3).loc["x"].tolist()]
# -> [3.0, 2.0, [1.0, 1.0, -1.0]]

# %% 40. A large one: a million rows
big = pd.DataFrame({"k": np.arange(1_000_000) % 1000, "v": np.arange(1_000_000) % 7})
most = big.groupby("k")["v"].sum()
del big
[len(most), int(most.sum())]
# -> [1000, 2999997]

# %% 41. Rows of the database
rows = await db_query("SELECT c.name, p.name AS parent FROM categories c JOIN categories p ON p.id = c.parent_id WHERE p.name = :parent ORDER BY 1", {"parent": "Engineering"})
pd.DataFrame(rows).to_dict("list")
# -> {"name": ["Databases", "Operations"], "parent": ["Engineering", "Engineering"]}

# %% 42. The database as a frame, with its types
frame = await db_frame("SELECT n, n * 1.5::numeric AS price, now() AS at, n % 2 = 0 AS even, ARRAY[n] AS list FROM generate_series(1, 4) n")
[str(frame["n"].dtype), str(frame["at"].dt.tz), frame.loc[frame["even"], "n"].tolist(), float(frame["price"].sum()), frame["list"].iloc[3]]
# -> ["int64", "UTC", [2, 4], 15.0, [4]]

# %% 43. A window function there and here: the same
both = await db_frame("SELECT id, user_id, duration_ms, sum(duration_ms) OVER (PARTITION BY user_id ORDER BY id) AS running FROM user_activities WHERE duration_ms IS NOT NULL AND id <= 3000 ORDER BY id")
here = both.groupby("user_id")["duration_ms"].cumsum()
[len(both) > 2000, bool((here == both["running"].astype("int64")).all())]
# -> [true, true]

# %% 44. Queries side by side
import asyncio

async def count(table):
    return (await db_query(f"SELECT count(*) AS n FROM {table}"))[0]["n"]

dict(zip(["users", "products"], await asyncio.gather(count("users"), count("products"))))
# -> {"users": 500, "products": 120}
