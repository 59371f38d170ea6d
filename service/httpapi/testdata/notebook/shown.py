# Exercises with rich outputs and artifacts. They continue the session of exercises.py, which
# explains the annotations.

# %% 45. A table as the last expression is the result and a rich output
sales.groupby("store", as_index=False)["units"].sum()
# has: {"type": "DataFrame", "shape": [3, 2], "columns": ["store", "units"], "head": [{"store": "Berlin", "units": 22.0}, {"store": "Lyon", "units": 9.0}, {"store": "Osaka", "units": 18.0}]}
# shown: application/vnd.dataresource+json text/html

# %% 46. A column is the result and no rich output
sales["units"].tail(2)
# has: {"type": "Series", "name": "units", "dtype": "float64", "index": [10, 11], "head": [1.0, 7.0]}

# %% 47. A table with a style
__result__ = len(table)
table.style.format("{:.0f}").background_gradient(axis=None).highlight_max(color="gold")
# -> 4
# shown: text/html

# %% 48. Tables as Markdown, LaTeX and HTML
[goals.to_markdown(index=False).splitlines()[2], goals.to_latex(index=False).count("Berlin"), goals.to_html().count("<tr")]
# -> ["| Berlin  |     60 |", 1, 3]

# %% 49. A line left open
import matplotlib.pyplot as plt

sales.set_index("day")["revenue"].cumsum().plot(title="Revenue")
plt.ylabel("euro")
__result__ = len(plt.gca().lines)
# -> 1
# shown: image/png

# %% 50. No figure is still open
plt.get_fignums()
# -> []

# %% 51. Bars of a pivot, side by side
ax = table.drop(index="All", columns="All").plot.bar(stacked=True, rot=0)
__result__ = [len(ax.patches), [t.get_text() for t in ax.get_legend().get_texts()]]
# -> [6, ["coffee", "tea"]]
# shown: image/png

# %% 52. Four kinds in one figure
rng = np.random.default_rng(1)
fig, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
axes[0, 0].hist(rng.normal(size=500), bins=20)
axes[0, 1].scatter(x, 3 * x + rng.normal(size=10), c=x, cmap="viridis")
axes[1, 0].boxplot([rng.normal(size=50), rng.normal(1, 2, 50)], tick_labels=["a", "b"])
axes[1, 1].pie([22, 9, 18], labels=["Berlin", "Lyon", "Osaka"], autopct="%d%%")
fig.suptitle("Four kinds")
__result__ = len(fig.axes)
# -> 4
# shown: image/png

# %% 53. Three figures, one after the other
for n in range(3):
    plt.figure(figsize=(2, 2))
    plt.imshow(np.eye(n + 2))
    plt.colorbar()
# shown: image/png
# shown: image/png
# shown: image/png

# %% 54. Shown in the middle, and one at the end
plt.fill_between(x, x, x**2, alpha=0.3)
plt.show()
print("between")
plt.errorbar(x, x, yerr=1)
plt.text(1, 5, "Größe 東京 $x^2$")
__result__ = len(plt.get_fignums())
# -> 1
# stdout: between
# stderr: glyph for
# shown: image/png
# shown: image/png

# %% 55. Saved by hand and closed: an artifact, and nothing shown
fig, ax = plt.subplots()
ax.step(x, x)
fig.savefig("/session/artifacts/step.svg")
fig.savefig("/session/artifacts/step.png", dpi=80)
plt.close(fig)
# left: step.png image/png
# left: step.svg image/svg+xml

# %% 56. seaborn
import seaborn as sns

sns.heatmap(counts, annot=True, fmt="d")
grid = sns.catplot(data=sales.dropna(), x="product", y="units", hue="store", kind="bar", errorbar=None, height=3)
__result__ = [len(grid.axes.flat), plt.get_fignums()]
# -> [1, [1, 2]]
# shown: image/png
# shown: image/png

# %% 57. plotly
import plotly.express as px

px.bar(sales, x="store", y="revenue", color="product")
__result__ = "a figure that pages draw"
# -> "a figure that pages draw"

# %% 58. Only the last expression is shown: this is one
__result__ = 3
px.scatter_3d(sales, x="units", y="price", z="revenue")
# -> 3
# shown: application/vnd.plotly.v1+json

# %% 59. A picture
from PIL import Image

__result__ = "picture"
Image.fromarray(np.tile(np.arange(64, dtype=np.uint8) * 4, (64, 1)))
# -> "picture"
# shown: image/png

# %% 60. Objects with representations of their own
from IPython.display import HTML, Markdown, Math

class Card:
    def __init__(self, title):
        self.title = title
    def _repr_html_(self):
        return f"<h1>{self.title}</h1>"

display("plain", {"a": 1})
display(Markdown("**bold**"), Math(r"\alpha"))
__result__ = None
Card("last")
# shown:
# shown:
# shown: text/markdown
# shown: text/latex
# shown: text/html

# %% 61. Progress, in its own line
from tqdm import tqdm

tqdm.pandas(desc="rows")
done = sum(1 for _ in tqdm(range(50), desc="loop"))
[done, sales["store"].progress_apply(len).sum().item()]
# -> [50, 61]
# stderr: loop: 100%
# stderr: rows: 100%

# %% 62. Outputs before an error are kept
plt.plot(x)
kept = sales["units"].sum()
print("before")
lost = sales["colour"].sum()
print("never")
# stdout: before
# fails: KeyError at 4: colour
# shown: image/png

# %% 63. The corrected cell continues with the same variables
["lost" in dir(), kept, plt.get_fignums(), sales["product"].nunique()]
# -> [false, 49.0, [], 2]

# %% 64. An error that suggests the right name
sales.groupby("store")["revenue"].totl()
# fails: AttributeError at 1: totl

# %% 65. A syntax error: nothing of the cell runs
kept = 0
sales[
# fails: SyntaxError at 2: '[' was never closed

# %% 66. After the syntax error, the variables are unchanged
kept
# -> 49.0

# %% 67. Functions and classes are kept, and can use each other
from dataclasses import asdict, dataclass

@dataclass
class Report:
    store: str
    revenue: float

def report(name):
    return Report(name, round(float(sales.loc[sales["store"] == name, "revenue"].sum()), 2))

# %% 68. In the next cell
[report("Lyon"), report("Nowhere")]
# -> [{"store": "Lyon", "revenue": 30.6}, {"store": "Nowhere", "revenue": 0.0}]

# %% 69. Leave files of many kinds
import json
import pathlib

out = pathlib.Path("/session/artifacts")
sales.to_csv(out / "sales.csv", index=False)
counts.to_excel(out / "counts.xlsx")
(out / "tables").mkdir()
sales.to_parquet(out / "tables" / "sales.parquet")
(out / "report.json").write_text(json.dumps(asdict(report("Osaka"))))
# -> 35
# left: counts.xlsx application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
# left: report.json application/json
# left: sales.csv text/csv; charset=utf-8
# left: tables/sales.parquet application/vnd.apache.parquet

# %% 70. Read them, change one, and leave the others
same = pd.read_parquet(out / "tables" / "sales.parquet")
again = pd.read_csv(out / "sales.csv", parse_dates=["day"])
(out / "report.json").write_text("{}")
pd.testing.assert_frame_equal(same, again, check_dtype=False)
# changed: report.json application/json

# %% 71. A film
from matplotlib.animation import FuncAnimation, PillowWriter

fig, ax = plt.subplots(figsize=(1, 1))
(dot,) = ax.plot([0], [0], "o")
film = FuncAnimation(fig, lambda n: dot.set_data([n / 100], [0]), frames=3)
film.save(out / "film.gif", writer=PillowWriter(fps=5))
plt.close(fig)
# left: film.gif image/gif

# %% 72. Notes of the work
debug("almost there", data={"cells": 72})
inspect_var("counts", counts)
[get_debug_info()["total_logs"], get_debug_info()["variable_names"]]
# -> [1, ["counts"]]

# %% 73. An event loop of the code's own
async def slowly():
    await asyncio.sleep(0.01)
    return (await db_query("SELECT 73 AS n"))[0]["n"]

asyncio.run(slowly())
# -> 73

# %% 74. All variables are still there
sorted({"sales", "stores", "readings", "weekly", "report", "Card", "frame", "big"} & set(dir()))
# -> ["Card", "frame", "readings", "report", "sales", "stores", "weekly"]
