"""Churn report for the weekly meeting."""
import pandas as pd
import numpy as np

AT_RISK_DAYS = 2
LOST_DAYS = 5


async def load():
    users = await db_frame("SELECT id AS user_id, country, plan, active, created_at FROM users")
    acts = await db_frame("""
        SELECT user_id, count(*) AS actions, max(timestamp) AS last_seen,
               count(*) FILTER (WHERE action = 'login') AS logins,
               avg(duration_ms)::float AS mean_ms
        FROM user_activities
        GROUP BY user_id
    """)
    return users.merge(acts, on="user_id", how="left")


def classify(df, now):
    days = (now - df["last_seen"]).dt.total_seconds() / 86400
    state = np.select([days.isna(), days > LOST_DAYS, days > AT_RISK_DAYS], ["never", "lost", "at risk"], "ok")
    return df.assign(days=days, state=state)


def table(df):
    t = pd.crosstab(df["plan"], df["state"], margins=True)
    order = [c for c in ("ok", "at risk", "lost", "never", "All") if c in t]
    return t[order]


now = pd.Timestamp.now(tz="UTC")
df = classify(await load(), now)
print(f"Churn report of {now:%Y-%m-%d %H:%M} UTC")
print(table(df).to_string())
print()
worst = df[df.state == "at risk"].nlargest(5, "days")
for r in worst.itertuples():
    print(f"  user {r.user_id:>4} {r.country:<10} {r.plan:<10} last seen {r.days:.3f} days ago, {r.actions:.0f} actions")

by_country = df.groupby("country").agg(users=("user_id", "size"), ok=("state", lambda s: (s == "ok").mean()))
by_country["se"] = np.sqrt(by_country.ok * (1 - by_country.ok) / by_country.users)
print()
print(by_country.sort_values("ok").round(3).head(5))
{"at_risk": int((df.state == "at risk").sum()), "lost": int((df.state == "lost").sum()), "generated": now.isoformat()}
