# why: fastest
import pandas as pd
results = pd.DataFrame({"runner": list("aaabbb"), "seconds": [61.0, 60.5, 60.1, 58.0, 58.4, 57.2]})
results["before"] = results.groupby("runner")["seconds"].shift(1)
results["change"] = results["seconds"] - results["before"]
fastest = results["change"].min()
print(fastest)
