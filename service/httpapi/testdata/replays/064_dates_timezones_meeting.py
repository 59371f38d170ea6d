from datetime import datetime
from zoneinfo import ZoneInfo

cities = {
    "San Francisco": "America/Los_Angeles",
    "New York": "America/New_York",
    "Berlin": "Europe/Berlin",
    "Kolkata": "Asia/Kolkata",
    "Tokyo": "Asia/Tokyo",
}
utc_now = datetime.now(ZoneInfo("UTC")).replace(microsecond=0)
print("UTC      ", utc_now.isoformat())
ok = []
for city, tz in cities.items():
    local = utc_now.astimezone(ZoneInfo(tz))
    working = 9 <= local.hour < 18 and local.weekday() < 5
    print(f"{city:<14} {local:%a %H:%M} UTC{local:%z} {'working' if working else 'off'}")
    if working:
        ok.append(city)
ok
