from datetime import datetime, timedelta
def next_runs(minute, hours, n):
    t = datetime.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    out = []
    while len(out) < n:
        if t.minute == minute and t.hour in hours:
            out.append(t)
        t += timedelta(minutes=1)
    return out
for t in next_runs(30, {6, 12, 18}, 4):
    print(t, "in", t - datetime.now())
