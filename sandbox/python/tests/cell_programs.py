"""Programs with a cell that is asked, and the rows and cells behind it, written by hand.

Each has a name, the program (pd and np are imported in its first two lines, which count), the path, the value, and for
some of its lines the rows that the line took, by position, and the values that it took. The last part is a text of
"ends", or "" if the answer must reach the end.
"""

HEAD = "import pandas as pd\nimport numpy as np\n"

SALES = '''sales = pd.DataFrame({
    "city": ["Oslo", "Rome", "Oslo", "Bonn", "Rome", "Oslo"],
    "item": ["a", "a", "b", "a", "b", "a"],
    "qty": [1, 2, 3, 4, 5, 6],
    "price": [2.5, 3.0, 4.0, 5.0, 1.0, 0.5],
})
'''  # lines 3 to 8

PROGRAMS = [
    # -- selection
    ("mask", SALES + 't = sales[sales["qty"] > 2]', "t.iloc[1, 2]", "4", {9: ([3], ["4"])}, ""),
    ("two masks", SALES + 't = sales[(sales["qty"] > 2) & (sales["city"] == "Oslo")]\nx = t["price"]',
     "x.iloc[1]", "0.5", {9: ([5], ["0.5"])}, ""),
    ("loc with a mask", SALES + 't = sales.loc[sales.city == "Rome", ["qty", "price"]]', "t.loc[4, 'price']", "1.0",
     {9: ([4], ["1.0"])}, ""),
    ("iloc slice", SALES + "t = sales.iloc[2:5]\nu = t.iloc[::-1]", "u.iloc[0, 2]", "5",
     {9: ([4], ["5"]), 10: ([2], ["5"])}, ""),
    ("query", SALES + 't = sales.query("qty > 2 and city != \'Oslo\'")', "t['qty'][4]", "5", {9: ([4], ["5"])}, ""),
    ("head and tail", SALES + "t = sales.head(4).tail(2)", "t.iloc[0, 2]", "3", {9: ([2], ["3"])}, ""),
    ("drop_duplicates", SALES + 't = sales.drop_duplicates("city")', "t.iloc[2, 2]", "4", {9: ([3], ["4"])}, ""),
    ("dropna", 't = pd.DataFrame({"x": [1.0, None, 3.0]})\nu = t.dropna()', "u.iloc[1, 0]", "3.0", {4: ([2], ["3.0"])},
     ""),
    ("sort", SALES + 't = sales.sort_values("price", ascending=False)\nu = t.reset_index(drop=True)', "u.loc[1, 'qty']",
     "3", {9: ([2], ["3"])}, ""),
    ("nlargest", SALES + 't = sales.nlargest(2, "price")', "t.iloc[1, 3]", "4.0", {9: ([2], ["4.0"])}, ""),
    ("set_index", SALES + 't = sales[["item", "qty"]].set_index("item")', "t.iloc[3, 0]", "4", {3: ([3], ["4"])}, ""),
    ("loc of a label", SALES + 't = sales.groupby("city")["qty"].sum()\nx = [t.loc["Rome"]]', "x[0]", "7",
     {9: ([1, 4], ["2", "5"]), 10: ([2], ["7"])}, ""),
    # -- columns
    ("column", SALES + 'sales["total"] = sales["qty"] * sales["price"]', "sales.loc[2, 'total']", "12.0",
     {9: ([2], ["3", "4.0", "12.0"])}, ""),
    ("column from a scalar", SALES + 'rate = 1.25\nsales["vat"] = sales["price"] * rate', "sales.loc[0, 'vat']",
     "3.125", {10: ([0], ["2.5", "1.25", "3.125"])}, ""),
    ("other column", SALES + 'sales["total"] = sales["qty"] * 2', "sales.loc[2, 'price']", "4.0", {}, ""),
    ("cells with loc", SALES + 'sales.loc[sales["qty"] > 4, "price"] = 9.0', "sales.loc[4, 'price']", "9.0",
     {9: ([4], ["9.0"])}, ""),
    ("cells that loc left", SALES + 'sales.loc[sales["qty"] > 4, "price"] = 9.0\nx = sales["price"].sum()\nxs = [x]',
     "xs[0]", "32.5", {10: ([0, 1, 2, 3, 4, 5], ["2.5", "3.0", "4.0", "5.0", "9.0"])}, ""),
    ("assign", SALES + 't = sales.assign(double=sales["qty"] * 2)', "t.loc[3, 'double']", "8",
     {9: ([3], ["4", "8"])}, ""),
    ("by label", 'a = pd.Series([1, 2, 3], index=["x", "y", "z"])\nb = pd.Series([10, 20, 30], index=["z", "y", "x"])\n'
     "c = a + b", "c['x']", "31", {5: ([0], ["1", "30"])}, ""),
    ("fillna", 't = pd.DataFrame({"x": [1.0, None, 3.0]})\nt["y"] = t["x"].fillna(7.0)', "t.loc[1, 'y']", "7.0",
     {4: ([1], ["nan", "7.0"])}, ""),
    ("text", 't = pd.DataFrame({"x": ["a ", " b"]})\nt["y"] = t["x"].str.strip().str.upper()', "t.loc[1, 'y']", "'B'",
     {4: ([1], ["' b'", "'b'", "'B'"])}, ""),
    ("times", 't = pd.DataFrame({"d": ["2024-05-01", "2023-01-02"]})\nt["y"] = pd.to_datetime(t["d"]).dt.year',
     "t.loc[1, 'y']", "2023", {4: ([1], ["'2023-01-02'"])}, ""),
    ("where", SALES + 'sales["band"] = np.where(sales["qty"] > 3, sales["price"], 0.0)', "sales.loc[3, 'band']", "5.0",
     {9: ([3], ["5.0"])}, ""),
    ("map", SALES + 'tax = {"Oslo": 25, "Rome": 22, "Bonn": 19}\nsales["tax"] = sales["city"].map(tax)',
     "sales.loc[4, 'tax']", "22", {10: ([4], ["'Rome'", "22"])}, ""),
    ("cumsum", SALES + 's = sales["qty"].cumsum()', "s[2]", "6", {9: ([0, 1, 2], ["1", "2", "3"])}, ""),
    ("rolling", SALES + 's = sales["qty"].rolling(2).mean()', "s[3]", "3.5", {9: ([2, 3], ["3", "4"])}, ""),
    ("shift", SALES + 's = sales["qty"] - sales["qty"].shift(1)', "s[4]", "1.0", {9: ([4], ["5", "4.0", "4"])}, ""),
    ("in place", SALES + 'sales.sort_values("price", inplace=True)\nsales.reset_index(drop=True, inplace=True)',
     "sales.loc[0, 'qty']", "6", {9: ([5], ["6"])}, ""),
    # -- merge and concat
    ("merge", 'a = pd.DataFrame({"k": [1, 2, 3], "x": [10, 20, 30]})\n'
     'b = pd.DataFrame({"k": [2, 3, 3], "y": [5, 6, 7]})\n'
     'm = a.merge(b, on="k", how="left")\nm["z"] = m["x"] + m["y"]\ns = m.sort_values("z")', "s.iloc[1, 3]", "36.0",
     {5: ([2], ["30"]), 6: ([2], ["30", "6.0"]), 7: ([2], ["36.0"])}, ""),
    ("merge without a row", 'a = pd.DataFrame({"k": [1, 2], "x": [10, 20]})\nb = pd.DataFrame({"k": [2], "y": [5]})\n'
     'm = pd.merge(a, b, how="left")', "m.loc[0, 'y']", "nan", {5: ([], [])}, ""),
    ("merge with suffixes", 'a = pd.DataFrame({"k": [1, 2], "v": [10, 20]})\n'
     'b = pd.DataFrame({"k": [2, 1], "v": [5, 6]})\n'
     'm = a.merge(b, on="k", suffixes=("", "_b"))', "m.loc[0, 'v_b']", "6", {5: ([1], ["6"])}, ""),
    ("join", 'a = pd.DataFrame({"x": [1, 2]}, index=["p", "q"])\nb = pd.DataFrame({"y": [5, 6]}, index=["q", "p"])\n'
     "j = a.join(b)", "j.loc['p', 'y']", "6", {5: ([1], ["6"])}, ""),
    ("concat", 'a = pd.DataFrame({"x": [1, 2]})\nb = pd.DataFrame({"x": [3, 4]})\n'
     "c = pd.concat([a, b], ignore_index=True)", "c.loc[3, 'x']", "4", {5: ([1], ["4"])}, ""),
    ("concat of a list that grew", 'parts = []\nfor n in range(3):\n'
     '    parts.append(pd.DataFrame({"n": [n, n * 10]}))\n'
     "c = pd.concat(parts)", "c.iloc[5, 0]", "20", {6: ([1], ["20"])}, ""),
    # -- groups
    ("sum of a group", SALES + 't = sales.groupby("city")["qty"].sum()', "t['Oslo']", "10",
     {9: ([0, 2, 5], ["1", "3", "6"])}, ""),
    ("groups of two keys", SALES + 't = sales.groupby(["city", "item"])["qty"].sum().reset_index()', "t.loc[1, 'qty']",
     "7", {9: ([0, 5], ["1", "6"])}, ""),
    ("named aggregation", SALES + 't = sales.groupby("city").agg(n=("qty", "size"), top=("price", "max"))',
     "t.loc['Rome', 'top']", "3.0", {9: ([1], ["3.0"])}, ""),
    ("aggregation by a dict", SALES + 't = sales.groupby("city").agg({"qty": "mean", "price": ["min", "max"]})',
     "t.loc['Oslo', ('price', 'min')]", "0.5", {9: ([5], ["0.5"])}, ""),
    ("size", SALES + 't = sales.groupby("city").size()', "t['Rome']", "2", {9: ([1, 4], [])}, ""),
    ("as_index", SALES + 't = sales.groupby("city", as_index=False)["qty"].sum()', "t.loc[1, 'qty']", "10",
     {9: ([0, 2, 5], ["1", "3", "6"])}, ""),
    ("transform", SALES + 'sales["share"] = sales["qty"] / sales.groupby("city")["qty"].transform("sum")',
     "sales.loc[4, 'share']", "0.7142857142857143", {9: ([1, 4], ["5", "7", "2"])}, ""),
    ("mean after a filter", SALES + 'big = sales[sales["qty"] > 1]\nt = big.groupby("item")["price"].mean()', "t['b']",
     "2.5", {10: ([1, 3], ["4.0", "1.0"]), 9: ([2, 4], ["4.0", "1.0"])}, ""),
    ("pivot_table", SALES + 'p = sales.pivot_table(values="qty", index="city", columns="item", aggfunc="sum")',
     "p.loc['Oslo', 'a']", "7.0", {9: ([0, 5], ["1", "6"])}, ""),
    ("unstack", SALES + 'u = sales.groupby(["city", "item"])["qty"].sum().unstack()', "u.loc['Rome', 'b']", "5.0",
     {9: ([4], ["5"])}, ""),
    ("value_counts", SALES + 'v = sales["city"].value_counts()', "v['Rome']", "2", {9: ([1, 4], ["'Rome'"])}, ""),
    ("melt", 'w = pd.DataFrame({"id": [1, 2], "x": [3, 4], "y": [5, 6]})\nm = w.melt(id_vars="id")',
     "m.loc[3, 'value']",
     "6", {4: ([1], ["6"])}, ""),
    ("resample", 's = pd.Series([1, 2, 3], index=pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-01"]))\n'
     'm = s.resample("MS").sum()', "m.iloc[0]", "3", {4: ([0, 1], ["1", "2"])}, ""),
    ("sum of a column", SALES + 'd = {"total": sales["qty"].sum()}', "d['total']", "21",
     {9: ([0, 1, 2, 3, 4, 5], ["1", "6"])}, ""),
    # -- arrays
    ("view", "a = np.arange(12).reshape(3, 4)\nrow = a[1]\nrow[0] = 100", "a[1, 0]", "100", {5: ([4], ["100"])}, ""),
    ("next to a view", "a = np.arange(12).reshape(3, 4)\nrow = a[1]\nrow[0] = 100", "a[1, 1]", "5",
     {3: ([5], ["5"])}, ""),
    ("slice of an array", "a = np.arange(12).reshape(3, 4)\nb = a[1:, ::2] * 10", "b[1, 1]", "100",
     {4: ([10], ["10"])}, ""),
    ("mask of an array", "a = np.array([5, 6, 7, 8])\nb = a[a > 5]", "b[2]", "8", {4: ([3], ["8"])}, ""),
    ("sum by axis", "a = np.arange(6).reshape(2, 3)\nb = a.sum(axis=0)", "b[1]", "5", {4: ([1, 4], ["1", "4"])}, ""),
    ("broadcast", "a = np.array([[1, 2], [3, 4]])\nb = np.array([10, 20])\nc = a + b", "c[1, 0]", "13",
     {5: ([2], ["3", "10"])}, ""),
    ("array in place", "a = np.zeros(4)\nb = np.array([1.5, 2.5])\na[1:3] = b\na += 1", "a[2]", "3.5",
     {5: ([2], ["2.5"]), 6: ([2], ["1"])}, ""),
    ("transpose", "a = np.array([[1, 2, 3], [4, 5, 6]])\nb = a.T", "b[2, 1]", "6", {3: ([5], ["6"])}, ""),
    # -- lists and dicts
    ("list of dicts", 'rows = []\nfor n in range(5):\n    rows.append({"n": n, "x": n * 2})', "rows[3]['x']", "6",
     {5: ([], ["3"])}, ""),
    ("comprehension", 'rows = [{"n": n, "x": n * 2} for n in range(5)]\nout = [r["x"] + 1 for r in rows if r["n"] > 2]',
     "out[1]", "9", {4: ([], ["8"]), 3: ([], ["4"])}, ""),
    ("sum of a list", 'xs = [3, 4, 5]\nd = {"sum": sum(xs), "max": max(xs)}', "d['sum']", "12",
     {4: ([0, 1, 2], ["3", "4", "5"])}, ""),
    ("maximum of a list", 'xs = [3, 9, 5]\nd = {"sum": sum(xs), "max": max(xs)}', "d['max']", "9",
     {4: ([1], ["9"])}, ""),
    ("sum of a generator", 'rows = [{"x": 1}, {"x": 2}]\nd = {}\nd["t"] = sum(r["x"] for r in rows)', "d['t']", "3",
     {5: ([0, 1], ["1", "2"])}, ""),
    ("loop", 'total = 0\nfor x in [5, 6, 7]:\n    total += x\nout = [total]', "out[0]", "18",
     {5: ([], ["5", "6", "7"])}, ""),
    ("counts", 'd = {}\nfor w in ["a", "b", "a"]:\n    d[w] = d.get(w, 0) + 1', "d['a']", "2", {5: ([], ["1"])}, ""),
    ("counts in place", 'd = {"a": 0, "b": 0}\nfor w in ["a", "b", "a"]:\n    d[w] += 5', "d['a']", "10",
     {5: ([], ["5"])}, ""),
    ("lists in a dict", 'd = {"k": [1]}\nd["k"].append(2 + 3)', "d['k'][1]", "5", {4: ([], ["5"])}, ""),
    ("sorted", 'rows = [("b", 2), ("a", 1), ("c", 3)]\ns = sorted(rows, key=lambda r: r[0])', "s[0][1]", "1",
     {4: ([1], [])}, ""),
    ("sort in place", 'rows = [["b", 22], ["a", 11]]\nrows.sort()', "rows[0][1]", "11", {4: ([1], [])}, ""),
    ("insert and pop", "xs = [1, 2]\nxs.insert(0, 10 * 10)\nxs.append(7)\nxs.pop(1)", "xs[0]", "100",
     {4: ([], ["100"])}, ""),
    ("index after pop", "xs = []\nfor n in (10, 20, 30):\n    xs.append(n + 1)\nxs.pop(0)", "xs[1]", "31",
     {5: ([], ["30", "31"])}, ""),
    ("zip and enumerate", 'a = [1, 2]\nb = [30, 40]\nout = []\nfor n, (x, y) in enumerate(zip(a, b)):\n'
     "    out.append(x + y)", "out[1]", "42", {7: ([], ["2", "40"])}, ""),
    ("items", 'd = {"a": 1, "b": 2}\nout = {k: v * 10 for k, v in d.items()}', "out['b']", "20", {4: ([], ["2"])}, ""),
    ("function", "def double(x):\n    y = x * 2\n    return y\nout = [double(n) for n in (3, 4)]", "out[1]", "8",
     {4: ([], ["4"])}, ""),

       ("attribute", "class Point:\n    def __init__(self, x):\n        self.x = x\np = Point(3)\np.x = p.x + 4",
     "p.x", "7",
     {7: ([], ["3", "7"]), 5: ([], ["3"])}, ""),
    ("rows to a table", 'rows = [{"k": "a", "v": 1}, {"k": "b", "v": 2}]\nt = pd.DataFrame(rows)\n'
     't["w"] = t["v"] + 1\nout = t.to_dict("records")', "out[1]['w']", "3", {5: ([1], ["2", "3"]), 4: ([1], ["2"])},
     ""),
    ("iterrows", SALES + "out = []\nfor _, row in sales.iterrows():\n    out.append(row['qty'] * 2)", "out[3]", "8",
     {10: ([3], []), 11: ([], ["4"])}, ""),
    ("the default of or", 'rows = [{"x": None}, {"x": 3}]\nout = [(r["x"] or 0) * 2 for r in rows]', "out[0]", "0",
     {4: ([], ["None", "0"])}, ""),
    # -- where it ends
    ("apply", SALES + 't = sales["qty"].apply(lambda x: x + 1)\nu = t * 2', "u[1]", "6", {10: ([1], ["3"])},
     "apply: a function of the program"),
    ("unknown function", "import json\nd = json.loads('{\"a\": [1, 2]}')", "d['a'][1]", "2", {}, "loads: not further"),
    ("from before", "y = [old[0] + 1]", "y[0]", "6", {3: ([], ["5"])}, "was there before the run"),
    ("random", "g = np.random.default_rng(1)\na = g.integers(0, 10, 5)\nb = a + 1", "b[0]", "5", {4: ([0], ["4"])}, ""),
    ("shuffle", "import random\nxs = [1, 2, 3]\nrandom.seed(1)\nrandom.shuffle(xs)", "xs[0]", "2", {},
     "may have changed it"),
]  # fmt: skip

# Programs that change values behind the back of the trace, or bind names in unusual ways: the name, the program, the
# path, the value, a text that the answer must have, and one that it must not have. The answer says what is so, or ends.
HARD = [
    ("exec", 'xs = [1, 2]\nexec("xs[0] = 5")', "xs[0]", "5", "not seen", "[1, 2]"),
    ("setattr", 'class P: pass\np = P()\np.x = 3\nsetattr(p, "x", 5)', "p.x", "5", "not set by", "'3'"),
    ("flat", "a = np.arange(4)\na.flat[1] = 9", "a[1]", "9", "not seen", "arange"),
    ("out", "a = np.arange(4)\nnp.add(a, 1, out=a)", "a[1]", "2", "may have changed it", "arange: made"),

       ("shuffle of numpy", "a = np.arange(4)\nnp.random.seed(1)\nnp.random.shuffle(a)", "a[0]", "3",
     "may have changed it",
     "arange: made"),
    ("slice store", "xs = [1, 2]\nxs[:] = [3, 4]", "xs[0]", "3", "slice is not followed", "[1, 2]"),
    ("global", "x = 1\ndef g():\n    global x\n    x = 2\ng()\ny = [x]", "y[0]", "2", "what set it is not followed",
     "'1'"),
    ("name of a comprehension", "x = 7\nz = [x for x in [7, 8]]\ny = [x]", "y[0]", "7", "'line': 3", "[7, 8]"),
    ("branch", "out = []\nfor c in (1, 0):\n    a = c - 1\n    b = 0\n    out.append(a if c else b)", "out[1]", "0",
     "'line': 6", "c - 1"),
    ("changed after append", 'row = {"x": 1}\nrows = []\nrows.append(row)\nrow["x"] = 5\ndf = pd.DataFrame(rows)',
     "df.loc[0, 'x']", "5", "'line': 6", "{\"x\": 1}"),
    ("dict with another value", 'd = {"x": 1}\ne = dict(d, x=2)', "e['x']", "2", "dict(d, x=2)", "{\"x\": 1}"),
    ("keys", 'd = {"a": 10}\nk = list(d)', "k[0]", "'a'", "", "10"),
    ("other value of where", 's = pd.Series([1, 2, 3])\nw = s.where(s > 2, -1)', "w[1]", "-1", "took the other value",
     "[1, 2, 3]"),
    ("part of where", 's = pd.Series([1, 2, 3])\nw = [s.where(s > 2, -1).sum()]', "w[0]", "1", "in 2 of 3 rows", "zzz"),
    ("equal elements", "xs = [2, 1, 1]\nxs.sort()", "xs[0]", "1", "cannot be told apart", "zzz"),
    ("cells in two steps", 's = pd.DataFrame({"x": [1, 2, 3]})\ns.loc[s["x"] > 1, "x"] = 7\nt = [s["x"].sum()]', "t[0]",
     "15", "set 2 cells", "zzz"),
    ("swap", "a = 1 + 1\nb = 2 + 1\na, b = b, a\ny = [a]", "y[0]", "3", "2 + 1", "1 + 1"),

       ("frames of the same place", "def f(n):\n    m = n\n    return [m]\nys = [f(k + 5)[0] for k in range(3)]",
     "ys[2]", "7",
     "k + 5", "zzz"),
    ("recursion", "def fact(n):\n    return 1 if n == 0 else n * fact(n - 1)\nr = [fact(4)]", "r[0]", "24", "n * fact",
     "zzz"),
    ("function of the session", "import statistics\nr = [statistics.pstdev([1, 2, 3])]", "r[0]", "0.816496580927726",
     "pstdev: not further", "zzz"),
    ("too often", "xs = []\nfor n in range(12_000):\n    xs.append(n)", "xs[3]", "3", "ran too often", "'3'"),
    ("names of frames", "def f():\n    x = 1\n    return x\ndef g():\n    return x\nx = 1\nf()\ny = [g()]", "y[0]",
     "1", "'line': 8", "'line': 4"),
    ("table that changed after groupby", 'df = pd.DataFrame({"k": [1, 1], "v": [2, 3]})\ng = df.groupby("k")\n'
     'df.loc[0, "v"] = 100\nt = g["v"].sum()', "t[1]", "103", "alone give 5", "zzz"),
    ("no such cell", "d = {'a': 1}", "d['b']", "", "is not a key", "zzz"),
    ("no such variable", "d = {'a': 1}", "e['b']", "", "is not a variable", "zzz"),
    ("no path", "d = {'a': 1}", "d[f(1)]", "", "is not a constant", "zzz"),
    ("several cells", 't = pd.DataFrame({"x": [1, 2]})', "t['x']", "", "leads to 2 values", "zzz"),
]  # fmt: skip
