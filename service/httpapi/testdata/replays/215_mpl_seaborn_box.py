import seaborn as sns
import pandas as pd, numpy as np
import matplotlib.pyplot as plt
df = pd.DataFrame({"g": np.repeat(list("abc"), 40), "v": np.random.normal(size=120) + np.repeat([0, 1, 2], 40)})
ax = sns.boxplot(data=df, x="g", y="v")
ax.set_title("by group")
plt.show()
df.groupby("g").v.median()
