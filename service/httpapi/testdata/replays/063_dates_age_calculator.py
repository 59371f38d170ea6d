import datetime as dt

people = {"Ada": "1815-12-10", "Grace": "1906-12-09", "Linus": "1969-12-28", "Guido": "1956-01-31"}
today = dt.date.today()

def age(born):
    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))

def next_birthday(born):
    candidate = born.replace(year=today.year)
    if candidate < today:
        candidate = candidate.replace(year=today.year + 1)
    return (candidate - today).days

rows = []
for name, iso in people.items():
    b = dt.date.fromisoformat(iso)
    rows.append((name, age(b), next_birthday(b)))
rows.sort(key=lambda r: r[2])
for r in rows:
    print("{} would be {} years old; next birthday in {} days".format(*r))
