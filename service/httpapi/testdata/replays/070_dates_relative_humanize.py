from datetime import datetime, timedelta, timezone

def ago(when, now=None):
    now = now or datetime.now(timezone.utc)
    s = int((now - when).total_seconds())
    for unit, size in (("year", 31536000), ("day", 86400), ("hour", 3600), ("minute", 60)):
        n = s // size
        if n:
            return f"{n} {unit}{'s' if n > 1 else ''} ago"
    return "just now" if s >= 0 else "in the future"

base = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
print(ago(base))
print(ago(datetime.now(timezone.utc) - timedelta(minutes=7)))
print(ago(datetime.now(timezone.utc) - timedelta(days=40, hours=3)))
print(ago(datetime.now(timezone.utc)))
datetime.now(timezone.utc).isoformat(timespec="milliseconds")
