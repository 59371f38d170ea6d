"""Programs that show a fact, and programs like them that do not."""

# The kind of a fact, words of its text, a program that shows it, and a similar program without it.
FACTS = [
    (
        "unmatched",
        "2 of 4 rows matched nothing in cities (on='id'): city, size are missing (NaN) in them",
        """
import pandas as pd
orders = pd.DataFrame({'id': [1, 2, 3, 4], 'customer': [1, 1, 2, 2], 'total': [5, 6, 7, 8]})
cities = pd.DataFrame({'id': [1, 2], 'city': ['Oslo', 'Bergen'], 'size': [1, None]})
merged = orders.merge(cities, on='id', how='left')
""",
        """
import pandas as pd
orders = pd.DataFrame({'id': [1, 2, 3, 4], 'customer': [1, 1, 2, 2], 'total': [5, 6, 7, 8]})
cities = pd.DataFrame({'id': [1, 2], 'city': ['Oslo', 'Bergen'], 'size': [1, None]})
merged = orders.merge(cities.rename(columns={'id': 'customer'}), on='customer', how='left')
""",
    ),
    (
        "text order",
        "as numbers, 7 and 12 are",
        """
prices = {'a': '9.5', 'b': '12', 'c': '7'}
best = max(prices.values())
""",
        """
prices = {'a': '9.5', 'b': '12', 'c': '7'}
best = max(map(float, prices.values()))
""",
    ),
    (
        "overwritten",
        "4 assignments to 2 keys: 2 replaced (overwrote) a value that was there already; 'a': 1, then 3, then 5",
        """
rows = [('a', 1), ('b', 2), ('a', 3), ('a', 5)]
d = {}
for k, v in rows:
    d[k] = v
""",
        """
rows = [('a', 1), ('b', 2), ('a', 3)]
d = {}
for k, v in rows:
    d[k] = d.get(k, 0) + v
""",
    ),
    (
        "overwritten",
        "3 pairs had only 2 different keys: 1 replaced",
        """
rows = [('a', 1), ('b', 2), ('a', 3)]
d = {k: v for k, v in rows}
""",
        """
rows = [('a', 1), ('b', 2), ('c', 3)]
d = {k: v for k, v in rows}
""",
    ),
    (
        "strip",
        "2 of 3 texts lost more than 'SKU-': 'SKU-K410' -> '410'",
        """
import pandas as pd
s = pd.Series(['SKU-A310', 'SKU-K410', 'SKU-U7'])
t = s.str.lstrip('SKU-')
""",
        """
import pandas as pd
s = pd.Series(['SKU-A310', 'SKU-K410', 'SKU-U7'])
t = s.str.removeprefix('SKU-')
""",
    ),
    (
        "strip",
        "1 of 2 texts lost more than '.txt': 'tt.txt' -> ''",
        """
names = [name.rstrip('.txt') for name in ['a.txt', 'tt.txt']]
""",
        """
names = [name.rstrip('. ') for name in ['a. ', 't .']]
""",
    ),
    (
        "reduced",
        "4.0, computed from 2 of 3 values (1.0 to 3.0), the median 2.0, 1 missing (NaN)",
        """
import pandas as pd
total = pd.Series([1.0, None, 3.0]).sum()
""",
        """
import pandas as pd
total = pd.Series([1.0, 3.0]).sum()
""",
    ),
    (
        "missing",
        "2 of 3 values were missing (NaN) after this and 0 before",
        """
import pandas as pd
a = pd.Series([1, 2, 3])
d = a.map({1: 1.0})
""",
        """
import pandas as pd
a, b = pd.Series([1, 2, 3]), pd.Series([1.0, None, None])
d = a * b
""",
    ),
    (
        "cut",
        "2 values lost the fraction: 2.5 was stored as 2",
        """
import numpy as np
a = np.zeros(3, dtype=int)
for i, x in enumerate([1.0, 2.5, 3.75]):
    a[i] = x
""",
        """
import numpy as np
a = np.zeros(3)
for i, x in enumerate([1.0, 2.5, 3.75]):
    a[i] = x
""",
    ),
    (
        "align",
        "by label (index), not by position: 3 of 3 labels of the table (0, 1, 2) are not in the index of the value, "
        "and are missing (NaN); 3 of 3 labels of the value (7, 8, 9) are not in the table",
        """
import pandas as pd
df = pd.DataFrame({'a': [1, 2, 3]})
s = pd.Series([4, 5, 6], index=[7, 8, 9])
df['b'] = s
""",
        """
import pandas as pd
df = pd.DataFrame({'a': [1, 2, 3]})
s = pd.Series([4, 5, 6])
df['b'] = s
""",
    ),
    (
        "cut",
        "3 of 3 values lost their fraction as integers (int), the most: 7.999 -> 7",
        """
xs = [1.5, 2.25, 7.999]
out = []
for x in xs:
    out.append(int(x))
""",
        """
xs = [1.0, 2.0, 7.0]
out = []
for x in xs:
    out.append(int(x))
""",
    ),
    (
        "text order",
        "not as numbers: '10' and '9'",
        """
a, b = '10', '9'
if a > b:
    print(1)
""",
        """
a, b = '10', '09'
if a > b:
    print(1)
""",
    ),
    (
        "text order",
        "as numbers, 9 and 100 are",
        """
xs = ['9', '10', '100']
m = max(xs)
""",
        """
xs = ['009', '010', '100']
m = max(xs)
""",
    ),
    (
        "types",
        "never equal",
        """
wanted = '2'
hits = 0
for n in [1, 2, 3]:
    if n == wanted:
        hits += 1
""",
        """
wanted = 2
hits = 0
for n in [1, 2, 3]:
    if n == wanted:
        hits += 1
""",
    ),
    (
        "types",
        "looked for str ('2') among int (1)",
        """
known = [1, 2, 3]
key = '2'
found = key in known
""",
        """
known = [1, 2, 3]
key = 2
found = key in known
""",
    ),
    (
        "types",
        "looked for str ('2') among the keys, which are int (1, 2, 3)",
        """
names = {1: 'a', 2: 'b', 3: 'c'}
key = '2'
found = names.get(key, '?')
""",
        """
names = {1: 'a', 2: 'b', 3: 'c'}
key = 2
found = names.get(key, '?')
""",
    ),
    (
        "default",
        "the default was used 4 of 4 times",
        """
d = {'A': 1}
total = 0
for k in ['a', 'b', 'c', 'd']:
    total += d.get(k, 0)
""",
        """
d = {'a': 1}
total = 0
for k in ['a', 'b', 'c', 'd']:
    total += d.get(k, 0)
""",
    ),
    (
        "always",
        "was false 4 of 4 times",
        """
n = 0
for x in [1, 2, 3, 4]:
    if x > 10:
        n += 1
""",
        """
n = 0
for x in [1, 2, 3, 14]:
    if x > 10:
        n += 1
""",
    ),
    (
        "truth",
        "1 of 2 times a dict without a true value counted as true, because it is not empty: {'email': False}",
        """
users = [{'mail': {'email': True}}, {'mail': {'email': False}}]
n = sum(1 for user in users if bool(user.get('mail')))
""",
        """
users = [{'mail': {'email': True}}, {'mail': {}}, {'mail': {'name': 'x'}}]
n = sum(1 for user in users if user['mail'] or {})
""",
    ),
    (
        "order",
        "the groups are in alphabetical order (sorted): 'April' first, 'March' last; in the rows, 'February' comes",
        """
import pandas as pd
df = pd.DataFrame({'month': ['February', 'March', 'April', 'February'], 'v': [1, 2, 3, 4]})
x = df.groupby('month')['v'].sum()
""",
        """
import pandas as pd
df = pd.DataFrame({'month': ['February', 'March', 'April', 'February'], 'v': [1, 2, 3, 4]})
x = df.groupby('month', sort=False)['v'].sum()
""",
    ),
    (
        "position",
        "position 2 has the label 3 (position, not label)",
        """
import pandas as pd
s = pd.Series([5, 6, 7], [1, 2, 3])
x = s.iloc[s.idxmin() + 1]
""",
        """
import pandas as pd
s = pd.Series([5, 6, 7], [1, 2, 3])
x = s.loc[s.idxmin() + 1]
""",
    ),
    (
        "never",
        "none of 3 values was True (never true), and argmax gave 0",
        """
import numpy as np
x = np.argmax(np.array([1, 2, 3]) > 5)
""",
        """
import numpy as np
x = np.argmax(np.array([1, 2, 3]) > 2)
""",
    ),
    (
        "columns",
        "part 1 (2 rows) has no column 'Amount', and has 'amount': these values are missing (NaN)",
        """
import pandas as pd
parts = [pd.DataFrame({'amount': [1, 2]}), pd.DataFrame({'Amount': [3]})]
x = pd.concat(parts)
""",
        """
import pandas as pd
parts = [pd.DataFrame({'amount': [1, 2]}), pd.DataFrame({'amount': [3]})]
x = pd.concat(parts)
""",
    ),
    (
        "nearly",
        "float 0.30000000000000004 and float 0.3 differ only in digits that floats do not keep (precision)",
        """
a = 0.1 + 0.2
b = 0.3
x = a == b
""",
        """
a = 0.1 + 0.3
b = 0.3
x = a == b
""",
    ),
    (
        "constant",
        "3 different values (1 to 3) all gave 7",
        """
def f(n):
    return 7
x = [f(n) for n in [1, 2, 3]]
""",
        """
def f(n):
    return n
x = [f(n) for n in [1, 2, 3]]
""",
    ),
    (
        "bom",
        "begins with '\\ufeff', a byte order mark (BOM), which is not visible: '\\ufeffday;rain'",
        """
data = b'\\xef\\xbb\\xbfday;rain'
x = data.decode('utf-8')
""",
        """
data = b'\\xef\\xbb\\xbfday;rain'
x = data.decode('utf-8-sig')
""",
    ),
    (
        "text order",
        "have time zones (UTC offsets), and their order as times is the other one",
        """
a, b = '2025-05-02T01:10:00+05:30', '2025-05-01T22:15:00+00:00'
x = a > b
""",
        """
a, b = '2025-05-02T01:10:00+00:00', '2025-05-01T22:15:00+00:00'
x = a > b
""",
    ),
    (
        "type",
        "took over the type int64 (integers, no fractions) of what it was given",
        """
import numpy as np
x = np.zeros_like(np.array([1, 2]))
""",
        """
import numpy as np
x = np.zeros_like(np.array([1.5, 2]))
""",
    ),
    (
        "key",
        "'day' is not a key; the keys are '\\ufeffday', 'rain'; '\\ufeffday' differs only in characters that are not",
        """
row = {'\ufeffday': 1, 'rain': 2}
try:
    x = row['day']
except KeyError:
    x = 0
""",
        """
row = {'day': 1, 'rain': 2}
try:
    x = row['day']
except KeyError:
    x = 0
""",
    ),
    (
        "truth",
        "2 of 4 times a dict without a true value counted as true",
        """
def check(x):
    return {'ok': x > 2}
n = 0
for x in [1, 2, 3, 4]:
    if check(x):
        n += 1
""",
        """
def check(x):
    return {'ok': x > 2}
n = 0
for x in [1, 2, 3, 4]:
    if check(x)['ok']:
        n += 1
""",
    ),
    (
        "empty",
        "was empty, so the loop did not run",
        """
rows = []
n = 0
for r in rows:
    n += 1
""",
        """
rows = [1]
n = 0
for r in rows:
    n += 1
""",
    ),
    (
        "replaced",
        "2 of 3 values were missing (None or NaN) and became 7",
        """
xs = [None, 2, None]
total = 0
for x in xs:
    total += x or 7
""",
        """
xs = [1, 2, 3]
total = 0
for x in xs:
    total += x or 7
""",
    ),
    (
        "falsy",
        "1 of 3 values counted as false and were replaced: 0 -> 7",
        """
xs = [0, 2, 3]
total = 0
for x in xs:
    total += x or 7
""",
        """
xs = [0, 2, 3]
total = 0
for x in xs:
    total += 7 if x is None else x
""",
    ),
    (
        "pairs",
        "whole days are left out",
        """
import datetime as dt
d = dt.timedelta(days=2, seconds=5)
s = d.seconds
""",
        """
import datetime as dt
d = dt.timedelta(days=2, seconds=5)
s = d.total_seconds()
""",
    ),
    (
        "no effect",
        "changed none of",
        """
out = []
for x in ['a', 'b', 'c']:
    out.append(x.replace('z', 'y'))
""",
        """
out = []
for x in ['a', 'b', 'z']:
    out.append(x.replace('z', 'y'))
""",
    ),
    (
        "multiplied",
        "the right table repeats 1 value of k, up to 2 times",
        """
import pandas as pd
a = pd.DataFrame({'k': [1, 2], 'x': [1, 2]})
b = pd.DataFrame({'k': [1, 1, 2], 'y': [1, 2, 3]})
c = a.merge(b)
""",
        """
import pandas as pd
a = pd.DataFrame({'k': [1, 2], 'x': [1, 2]})
b = pd.DataFrame({'k': [1, 2], 'y': [1, 3]})
c = a.merge(b)
""",
    ),
    (
        "multiplied",
        "were multiplied",
        """
import pandas as pd
a = pd.DataFrame({'k': [1, 2], 'x': [1, 2]})
b = pd.DataFrame({'k': [1, 1, 2, 2], 'y': [1, 2, 3, 4], 'z': 1})
b = b[b.y > 1]
c = pd.merge(b, b, on='k')
""",
        """
import pandas as pd
b = pd.DataFrame({'k': [1, 2, 3, 4], 'y': [1, 2, 3, 4], 'z': 1})
b = b[b.y > 1]
c = pd.merge(b, b, on='k')
""",
    ),
    (
        "lost",
        "2 rows had the label 0 (duplicate labels)",
        """
import pandas as pd
a = pd.DataFrame({'x': [1, 2, 3]}, index=[0, 1, 0])
label = 0
b = a.drop(label)
""",
        """
import pandas as pd
a = pd.DataFrame({'x': [1, 2, 3]}, index=[0, 1, 2])
label = 0
b = a.drop(label)
""",
    ),
    (
        "lost",
        "2 were left out",
        """
import pandas as pd
a = pd.DataFrame({'x': [1, None, 3], 'y': [None, None, 1]})
b = a.dropna()
t = pd.DataFrame({'d': pd.to_datetime(['2024-01-01', '2024-01-02']), 'v': [1, 2]})
u = t[t.v > 1]
""",
        """
import pandas as pd
a = pd.DataFrame({'x': [1, 2, 3]})
b = a.dropna()
""",
    ),
    (
        "broadcast",
        "every row met every column",
        """
import numpy as np
a = np.arange(3)
b = np.arange(3).reshape(3, 1)
c = a - b
""",
        """
import numpy as np
a = np.arange(3)
b = np.arange(3)
c = a - b
""",
    ),
    (
        "shape",
        "(2, 3)",
        """
import numpy as np
a = np.arange(6).reshape(2, 3)
b = a.sum(axis=0)
c = a.T
""",
        """
import numpy as np
a = np.arange(6)
b = a * 2
""",
    ),
    (
        "slice",
        "they overlap",
        """
import pandas as pd
s = pd.Series(range(9))
out = []
for i in range(0, 9, 3):
    out.append(s.loc[i : i + 3].sum())
""",
        """
import pandas as pd
s = pd.Series(range(9))
out = []
for i in range(0, 9, 3):
    out.append(s.iloc[i : i + 3].sum())
""",
    ),
    (
        "missing",
        "2 of 3 values were missing (NaN) after this and 0 before",
        """
import pandas as pd
s = pd.Series(['1', 'x', 'y'])
n = pd.to_numeric(s, errors='coerce')
""",
        """
import pandas as pd
s = pd.Series(['1', '2', '3'])
n = pd.to_numeric(s, errors='coerce')
""",
    ),
    (
        "replaced",
        "2 of 4 values were missing (NaN) and became 0.0",
        """
import pandas as pd
s = pd.Series([1.0, None, 3.0, None])
n = s.fillna(0)
t = s.astype(str)
""",
        """
import pandas as pd
s = pd.Series([1.0, 2.0, 3.0, 4.0])
n = s.fillna(0)
""",
    ),
    (
        "replaced",
        "became 'None'",
        """
import pandas as pd
s = pd.Series(['a', None, 'b'], dtype=object)
n = s.map(str)
""",
        """
import pandas as pd
s = pd.Series(['a', 'c', 'b'], dtype=object)
n = s.map(str)
""",
    ),
    (
        "skipped",
        "1 of 3 values were missing (NaN) and were skipped",
        """
import pandas as pd
df = pd.DataFrame({'k': ['a', 'a', 'b'], 'v': [1.0, None, 3.0]})
m = df.groupby('k')['v'].mean()
""",
        """
import pandas as pd
df = pd.DataFrame({'k': ['a', 'a', 'b'], 'v': [1.0, 2.0, 3.0]})
m = df.groupby('k')['v'].mean()
""",
    ),
    (
        "wrap",
        "unsigned",
        """
import numpy as np
a = np.array([1, 2], dtype=np.uint64)
b = np.array([2, 1], dtype=np.uint64)
c = a - b
""",
        """
import numpy as np
a = np.array([1, 2], dtype=np.int64)
b = np.array([2, 1], dtype=np.int64)
c = a - b
""",
    ),
    (
        "wrap",
        "down to -56",
        """
import numpy as np
a = np.array([100, 120, 127], dtype=np.int8)
c = a + a
""",
        """
import numpy as np
a = np.array([100, 120, 127], dtype=np.int64)
c = a + a
""",
    ),
    (
        "zeros",
        "none before",
        """
import pandas as pd
i = pd.to_datetime(['2024-01-01', '2024-01-04'])
s = pd.Series([1, 2], index=i)
d = s.resample('D').sum()
""",
        """
import pandas as pd
i = pd.to_datetime(['2024-01-01', '2024-01-02'])
s = pd.Series([1, 2], index=i)
d = s.resample('D').sum()
""",
    ),
    (
        "epoch",
        "nanoseconds",
        """
import pandas as pd
s = pd.Series([1700000000, 1700000060])
t = pd.to_datetime(s)
""",
        """
import pandas as pd
s = pd.Series([1700000000, 1700000060])
t = pd.to_datetime(s, unit='s')
""",
    ),
    (
        "no effect",
        "changed none of 3 values",
        """
import pandas as pd
s = pd.Series(['a.b', 'c', 'd'])
t = s.replace('.', '')
u = s.str.replace('zz', '')
""",
        """
import pandas as pd
s = pd.Series(['a.b', 'c', 'd'])
t = s.str.replace('.', '', regex=False)
""",
    ),
    (
        "type",
        "int64 -> float64",
        """
import pandas as pd
s = pd.Series([1, 2, 3])
t = s.div(2)
""",
        """
import pandas as pd
s = pd.Series([1.0, 2, 3])
t = s.div(2)
""",
    ),
    (
        "constant",
        "all became",
        """
import numpy as np
x = np.array([1.5, 2.5, 3.5])
xp = np.array([30.0, 20.0, 10.0])
fp = np.array([3.0, 2.0, 1.0])
y = np.interp(x, xp, fp)
""",
        """
import numpy as np
x = np.array([11.5, 12.5, 23.5])
xp = np.array([10.0, 20.0, 30.0])
fp = np.array([1.0, 2.0, 3.0])
y = np.interp(x, xp, fp)
""",
    ),
    (
        "cut",
        "2 of 3 values lost their fraction",
        """
import pandas as pd
s = pd.Series([1.5, 2.0, 3.9])
t = s.astype(int)
""",
        """
import pandas as pd
s = pd.Series([1.0, 2.0, 3.0])
t = s.astype(int)
""",
    ),
    (
        "align",
        "by label (index), not by position: 2 labels only on the left ('u', 'w'), 4 only on the right ('x', 'y', 'z', "
        "...); 6 of 7 results were missing (NaN)",
        """
import pandas as pd
a = pd.Series([1, 2, 3], index=list('uvw'))
b = pd.Series([1, 2, 3, 4, 5], index=list('vxyzt'))
c = a - b
""",
        """
import pandas as pd
a = pd.Series([1, 2, 3])
b = pd.Series([1, 2, 3])
c = a - b
""",
    ),
    (
        "blocks",
        "computed across the groups of city",
        """
import pandas as pd
df = pd.DataFrame({'city': ['a'] * 3 + ['b'] * 3, 'v': [1, 2, 3, 90, 91, 92]})
df['d'] = df['v'].diff()
""",
        """
import pandas as pd
df = pd.DataFrame({'city': ['a'] * 3 + ['b'] * 3, 'v': [1, 2, 3, 90, 91, 92]})
df['d'] = df.groupby('city')['v'].diff()
""",
    ),
    (
        "blocks",
        "computed across the 2 groups of city",
        """
import pandas as pd
df = pd.DataFrame({'city': ['a'] * 3 + ['b'] * 3, 'v': [1, 50, 3, 4, 91, 2]})
df['d'] = df['v'].diff()
""",
        """
import pandas as pd
df = pd.DataFrame({'city': ['a'] * 3 + ['b'] * 3, 'v': [1, 50, 3, 4, 91, 2]})
df['d'] = df.groupby('city')['v'].diff()
""",
    ),
    (
        "groups",
        "1 of 3 rows had no k (missing, NaN) and were in no group",
        """
import pandas as pd
df = pd.DataFrame({'k': ['a', None, 'b'], 'v': [1, 2, 3]})
key = 'k'
m = df.groupby(key)['v'].sum()
""",
        """
import pandas as pd
df = pd.DataFrame({'k': ['a', 'c', 'b'], 'v': [1, 2, 3]})
key = 'k'
m = df.groupby(key)['v'].sum()
""",
    ),
    (
        "midnight",
        "00:00 (midnight)",
        """
import pandas as pd
df = pd.DataFrame({'t': pd.to_datetime(['2024-01-30 10:00', '2024-01-31 12:00'])})
m = df[df['t'] <= '2024-01-31']
""",
        """
import pandas as pd
df = pd.DataFrame({'t': pd.to_datetime(['2024-01-30 10:00', '2024-01-31 12:00'])})
m = df[df['t'] < '2024-02-01']
""",
    ),
    (
        "reduced",
        "near the minimum",
        """
import numpy as np
a = np.arange(200)
p = np.percentile(a, 0.95)
""",
        """
import numpy as np
a = np.arange(200)
p = np.percentile(a, 95)
""",
    ),
    (
        "reduced",
        "1 missing (NaN), 1 zero",
        """
import pandas as pd
s = pd.Series([1.0, None, 3.0, 0.0])
m = s.mean()
k = s.count()
""",
        """
import pandas as pd
s = pd.Series([1.0, 2.0, 3.0])
m = s.mean()
""",
    ),
    (
        "value",
        "4 values: 4 int, 1 to 4",
        """
t = 0
for x in [1, 2, 3, 4]:
    t += x * 1
""",
        """
t = 1
""",
    ),
    (
        "cut",
        "2 of 3 values lost their fraction as integers (int), the most: 3.5 -> 4",
        """
out = []
for x in [1.0, 2.7, 3.5]:
    out.append(round(x))
""",
        """
def grade(x):
    return 1 if x > 2.5 else 0
out = []
for x in [11.5, 20.25, 17.999]:
    out.append(grade(x))
""",
    ),
    (
        "default",
        "the default was used 3 of 3 times",
        """
d = {}
for k in 'abc':
    d.get(k, 0)
""",
        """
d = {}
for k in 'abc':
    d[k] = d.get(k, 0) + 1
""",
    ),
    (
        "slice",
        "they overlap",
        """
import pandas as pd
s = pd.Series(range(5), index=pd.date_range('2024-01-01', periods=5))
out = []
days = ['2024-01-01', '2024-01-03', '2024-01-05']
for a, b in zip(days, days[1:]):
    out.append(s[a:b].sum())
""",
        """
import pandas as pd
s = pd.Series(range(9))
out = []
for i in range(7):
    out.append(s.iloc[i : i + 2].sum())
    out.append(s[i : i + 2].sum())
""",
    ),
    (
        "types",
        "compared str ('1') with int (1)",
        """
a, b = '1', 1
is_same = a == b
""",
        """
import numpy as np
a, b = 'x', np.array(['x'])[0]
is_same = a == b
known = [1, '2']
is_known = a in known
""",
    ),
]
