import pandas as pd
df = pd.DataFrame({"country": ["DE", "FR"], "plan": ["pro", "free"]})
print(df.shape)
print(df.plan.unique())
df["contry"].value_counts()
