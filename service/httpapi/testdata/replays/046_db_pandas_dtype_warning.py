import pandas as pd
df = await db_frame("SELECT timestamp, action FROM user_activities ORDER BY timestamp DESC LIMIT 500")
day = df.timestamp.dt.date.iloc[0]
print(df[df.timestamp == str(day)].shape)
print((df.timestamp.dt.normalize() == pd.Timestamp(day, tz=df.timestamp.dt.tz)).sum())
df.action.value_counts().head(3)
