# Notebooks about models, plots and files. magics.py explains the format.

# ## a linear model
# %% data
%matplotlib inline
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
rng = np.random.default_rng(0)
df = pd.DataFrame({"x": np.arange(50.0)})
df["y"] = 3 * df["x"] + 2 + rng.normal(size=50)
df.shape
# -> [50, 2]
# %% fit
%time model = LinearRegression().fit(df[["x"]], df["y"])
round(model.coef_[0], 1)
# -> 3.0
# prints: Wall time:
# %% the model shows itself
model
# has: {"type": "LinearRegression"}
# shown: text/html
# %% residuals
import matplotlib.pyplot as plt
plt.scatter(df["x"], df["y"] - model.predict(df[["x"]]));
# shown: image/png

# ## a classifier
# %% cross-validation with workers
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score, train_test_split
X, y = load_iris(return_X_y=True, as_frame=True)
bool(cross_val_score(RandomForestClassifier(20, n_jobs=-1, random_state=0), X, y, cv=3).mean() > 0.9)
# -> true
# %% a pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
bool(pipe.score(X_test, y_test) > 0.9)
# -> true
# %% a report
from sklearn.metrics import ConfusionMatrixDisplay, classification_report
print(classification_report(y_test, pipe.predict(X_test)))
ConfusionMatrixDisplay.from_estimator(pipe, X_test, y_test);
# prints: precision
# shown: image/png

# ## tables of a page
# %% read
import pandas as pd
from io import StringIO
page = "<table><tr><th>city</th><th>n</th></tr><tr><td>Bern</td><td>1</td></tr></table>"
pd.read_html(StringIO(page))[0].to_dict("list")
# -> {"city": ["Bern"], "n": [1]}
# %% of a broken page
pd.read_html(StringIO("<table><tr><th>a<th>b<tr><td>1<td>2"), flavor="html5lib")[0].to_dict("list")
# -> {"a": [1], "b": [2]}
# %% with Beautiful Soup
from bs4 import BeautifulSoup
BeautifulSoup(page, "lxml").th.text
# -> "city"

# ## seaborn's plots
# %% of a table
import pandas as pd
import seaborn as sns
sns.set_theme()
df = pd.DataFrame({"k": list("abab"), "v": [1, 2, 3, 4], "w": [2, 1, 4, 3]})
ax = sns.barplot(df, x="k", y="v")
# shown: image/png
# %% a grid of plots
sns.pairplot(df[["v", "w"]]);
# shown: image/png
# %% a heat map
sns.heatmap(df[["v", "w"]].corr(), annot=True)
# has: {"type": "Axes"}
# shown: image/png

# ## plotly's files
# %% a picture needs a browser
import plotly.express as px
fig = px.line(x=[1, 2, 3], y=[2, 1, 3])
fig.write_image("figure.png")
# fails: RuntimeError at 3: fig.write_html('figure.html')
# %% a page does not
fig.write_html("/session/artifacts/figure.html", include_plotlyjs="cdn")
# left: figure.html text/html; charset=utf-8
# %% a table of traces
from plotly.subplots import make_subplots
import plotly.graph_objects as go
both = make_subplots(rows=1, cols=2)
both.add_trace(go.Bar(y=[1, 2]), row=1, col=1)
both.add_trace(go.Scatter(y=[2, 1]), row=1, col=2)
both.show()
# shown: application/vnd.plotly.v1+json

# ## progress bars
# %% without widgets
import warnings
warnings.simplefilter("ignore")
import io
from tqdm.auto import tqdm
bar = io.StringIO()
sum(tqdm(range(5), file=bar))
# -> 10
# %% of pandas
import pandas as pd
print("5/5" in bar.getvalue())
tqdm.pandas(file=bar)
int(pd.Series([1, 2]).progress_apply(lambda n: n * 2).sum())
# -> 6
# prints: True

# ## files of many formats
# %% Parquet and Arrow
import pandas as pd
df = pd.DataFrame({"a": [1, 2], "t": pd.to_datetime(["2024-01-01", "2024-01-02"])})
df.to_parquet("t.parquet")
df.to_feather("t.feather")
bool(pd.read_parquet("t.parquet").equals(pd.read_feather("t.feather")))
# -> true
# %% a database of its own
import sqlite3
with sqlite3.connect("t.db") as db:
    df.to_sql("t", db, index=False)
int(pd.read_sql("SELECT sum(a) AS s FROM t", sqlite3.connect("t.db"))["s"][0])
# -> 3
# %% archives
import zipfile
df.to_csv("t.csv.gz", index=False)
with zipfile.ZipFile("/session/artifacts/all.zip", "w") as archive:
    archive.write("t.csv.gz")
len(pd.read_csv("t.csv.gz"))
# -> 2
# left: all.zip application/zip
# %% listed by the shell
%ls
# prints: t.parquet

# ## groups and time
# %% a pivot
import numpy as np
import pandas as pd
days = pd.date_range("2024-01-01", periods=90)
df = pd.DataFrame({"day": days, "k": list("abc") * 30, "v": np.arange(90)})
df.pivot_table(index="k", values="v", aggfunc=["mean", "sum"]).shape
# -> [3, 2]
# %% by month
df.set_index("day")["v"].resample("MS").sum().tolist()
# -> [465, 1305, 2235]
# %% described, and cut as its settings say
with pd.option_context("display.max_rows", 4):
    display(df["v"])
# cut: {"rows": 86}
# shown:
# %% a rolling mean, drawn
df.set_index("day")["v"].rolling(7).mean().plot(title="7 days");
# shown: image/png
