from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

tz = ZoneInfo("Europe/Berlin")
year = datetime.now(tz).year
changes = []
day = datetime(year, 1, 1, 12, tzinfo=tz)
prev = day.utcoffset()
while day.year == year:
    if day.utcoffset() != prev:
        changes.append((day.date().isoformat(), str(prev), str(day.utcoffset())))
        prev = day.utcoffset()
    day += timedelta(days=1)
print("Zeitumstellungen", year)
for c in changes:
    print(" ", c)
now = datetime.now(tz)
print("gerade Sommerzeit?", bool(now.dst()), now.tzname())
