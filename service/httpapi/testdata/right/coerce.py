# why: average
import pandas as pd
survey = pd.DataFrame({"name": ["Ana", "Bo", "Cy", "Di", "Ed"], "age": ["34", "unknown", "41", "", "29"]})
survey["age"] = pd.to_numeric(survey["age"], errors="coerce")
answered = survey.dropna(subset=["age"])
average = answered["age"].mean()
missing = int(survey["age"].isna().sum())
print(f"{missing} without an age")
