# why: overall
import pandas as pd
films = pd.DataFrame({"title": list("abcdef"), "genre": ["x", "x", "y", "y", "y", "z"],
                      "rating": [4.0, None, 3.0, 5.0, None, 2.0]})
rated = films["rating"].notna().sum()
overall = films["rating"].mean()
by_genre = films.groupby("genre")["rating"].agg(["mean", "count"])
enough = by_genre[by_genre["count"] >= 2]
