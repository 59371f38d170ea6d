"""An ordinary analysis: tables, a loop over their rows, classes, text and a report."""

import json
import re
from collections import defaultdict

import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
N = 6000
raw = pd.DataFrame({
    'user': rng.integers(1, 50, N),
    'action': rng.choice(['login', 'view', 'buy'], N),
    'amount': rng.normal(20, 5, N).round(2),
    'day': pd.date_range('2024-01-01', periods=N, freq='h'),
})
class Stats:
    def __init__(self):
        self.count = 0
        self.total = 0.0
        self.seen = []
    def add(self, value):
        self.count += 1
        self.total += value
        if value > 30:
            self.seen.append(value)
    def mean(self):
        return self.total / self.count if self.count else 0.0
def clean(row):
    name = row['action'].strip().lower()
    amount = row['amount']
    if amount < 0:
        amount = 0.0
    return name, amount
stats = defaultdict(Stats)
log = []
for row in raw.to_dict('records'):
    name, amount = clean(row)
    stats[name].add(amount)
    if amount > 35:
        log.append((row['user'], name, amount))
totals = raw.groupby(['user', 'action'])['amount'].sum().unstack(fill_value=0)
share = totals.div(totals.sum(axis=1), axis=0)
top = totals.sum(axis=1).nlargest(10)
words = defaultdict(int)
text = ' '.join(raw['action'].head(2000))
for word in re.findall(r'[a-z]+', text):
    words[word] += 1
daily = raw.set_index('day')['amount'].resample('D').mean()
smooth = daily.rolling(7).mean().dropna()
best = None
for day, value in smooth.items():
    if best is None or value > best[1]:
        best = (day, value)
scores = {}
for user in range(1, 50):
    part = raw[raw['user'] == user]
    scores[user] = float(part['amount'].std())
merged = share.reset_index().merge(pd.Series(scores, name='std'), left_on='user', right_index=True)
report = {
    'mean': {name: s.mean() for name, s in stats.items()},
    'top': [int(u) for u in top.index],
    'rows': len(merged),
}
out = json.dumps(report, sort_keys=True)
