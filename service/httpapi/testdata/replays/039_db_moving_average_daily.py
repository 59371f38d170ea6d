df = await db_frame("SELECT date_trunc('day', timestamp) AS day, count(*) AS n FROM user_activities GROUP BY 1 ORDER BY 1")
s = df.set_index("day").n
out = s.to_frame("n").assign(ma3=s.rolling(3).mean(), pct=s.pct_change().mul(100).round(2))
print(out.tail(10))
print("latest day is", s.index[-1], "age:", datetime.now(timezone.utc).date() - s.index[-1].date())
