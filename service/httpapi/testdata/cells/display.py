# Notebooks that show something. magics.py explains the format.

# ## display classes
# %% HTML and Markdown
from IPython.display import display, HTML, Markdown
display(HTML("<b>x</b>"), Markdown("# y"))
# shown: text/html
# shown: text/markdown
# %% as the last value
HTML("<i>z</i>")
# has: {"type": "HTML"}
# shown: text/html
# %% other classes
from IPython.display import JSON, SVG, Code, Latex, Math
display(JSON({"a": 1}), SVG("<svg xmlns='http://www.w3.org/2000/svg'/>"), Latex("$x$"), Math("y"))
# shown: application/json
# shown: image/svg+xml
# shown: text/latex
# shown: text/latex
# %% code
display(Code("x = 1", language="python"))
# shown: text/html text/latex
# %% of bundles
display({"text/html": "<b>raw</b>"}, raw=True)
# shown: text/html
# %% by type
from IPython.display import display_html, display_markdown
display_html("<b>h</b>", raw=True)
display_markdown("m", raw=True)
# shown: text/html
# shown: text/markdown

# ## display without an import
# %% a table
import pandas as pd
display(pd.DataFrame({"a": [1, 2]}))
# shown: application/vnd.dataresource+json text/html
# %% two at once
display(1, "text")
# shown:
# shown:

# ## IPython after other libraries
# %% imports
import matplotlib.pyplot as plt
import plotly.express as px
import seaborn as sns
import IPython
# %% display
IPython.display.display(IPython.display.HTML("<b>late</b>"))
# shown: text/html

# ## IPython first
# %% imports
from IPython.display import *
import plotly.io as pio
import plotly.graph_objects as go
# %% both show
display(HTML("a"))
pio.show(go.Figure(go.Scatter(y=[1, 2])))
# shown: text/html
# shown: application/vnd.plotly.v1+json

# ## images
# %% of bytes
from IPython.display import Image
import io
from PIL import Image as PILImage
buffer = io.BytesIO()
PILImage.new("RGB", (4, 4), "red").save(buffer, "PNG")
Image(buffer.getvalue())
# has: {"type": "Image"}
# shown: image/png
# %% of a file
from pathlib import Path
Path("red.png").write_bytes(buffer.getvalue())
Image(filename="red.png", width=20)
# has: {"type": "Image"}
# shown: image/png
# %% of Pillow
PILImage.new("L", (2, 2))
# has: {"type": "Image"}
# shown: image/png

# ## progress
# %% a display that is updated shows its first and its last state
handle = display("0 %", display_id=True)
for n in range(100):
    handle.update(f"{n + 1} %")
# shown:
# shown:
# %% cleared
from IPython.display import clear_output
for n in range(3):
    clear_output(wait=True)
    print(n)
# stdout: 0
# stdout: 1
# stdout: 2
# %% tqdm
from tqdm import tqdm
sum(tqdm(range(3), disable=True))
# -> 3
# %% tqdm for notebooks falls back to text
from tqdm.auto import tqdm
sum(tqdm(range(3)))
# -> 3
# stderr: 3/3

# ## plotly shows
# %% its method
import plotly.express as px
fig = px.bar(x=["a", "b"], y=[1, 2])
fig.show()
# shown: application/vnd.plotly.v1+json
# %% any renderer
fig.show(renderer="browser")
fig.show("png")
# shown: application/vnd.plotly.v1+json
# shown: application/vnd.plotly.v1+json
# %% the last value
fig
# has: {"type": "Figure"}
# shown: application/vnd.plotly.v1+json
# %% a dict
import plotly.io as pio
pio.renderers.default = "notebook"
pio.show({"data": [{"type": "bar", "y": [1]}]})
# shown: application/vnd.plotly.v1+json
# %% offline
from plotly.offline import init_notebook_mode
fig.update_layout(title="T");

# ## plotly of a table
# %% a line
import pandas as pd
import plotly.express as px
df = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=3), "n": [1.0, None, 3.0]})
px.line(df, x="day", y="n").show()
# shown: application/vnd.plotly.v1+json
# %% a page
px.pie(values=[1, 2]).write_html("/session/artifacts/pie.html", include_plotlyjs=False)
# left: pie.html text/html; charset=utf-8

# ## matplotlib
# %% left open
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.title("one");
# shown: image/png
# %% shown
plt.figure()
plt.bar([1, 2], [3, 4])
plt.show()
print("after")
# stdout: after
# shown: image/png
# %% two
for n in range(2):
    plt.figure()
    plt.plot([n])
plt.show()
# shown: image/png
# shown: image/png
# %% of a figure
fig, axes = plt.subplots(1, 2)
axes[0].plot([1])
fig.show()
# shown: image/png
# %% saved
fig, ax = plt.subplots()
ax.plot([1, 2])
plt.savefig("/session/artifacts/line.png")
plt.close(fig)
# left: line.png image/png
# %% hidden text
plt.hist([1, 2, 2]);
# shown: image/png

# ## pylab's way
# %% state
from matplotlib import pyplot as plt
import numpy as np
plt.style.use("ggplot")
x = np.linspace(0, 1, 5)
plt.subplot(2, 1, 1)
plt.plot(x, x ** 2, label="square")
plt.legend()
plt.tight_layout()
plt.show()
# shown: image/png

# ## seaborn
# %% a distribution
import pandas as pd
import seaborn as sns
sns.set_theme()
data = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 4, 9, 16], "kind": list("abab")})
sns.scatterplot(data=data, x="x", y="y", hue="kind");
# shown: image/png
# %% a grid
sns.heatmap(data[["x", "y"]].corr(), annot=True)
import matplotlib.pyplot as plt
plt.show()
# shown: image/png

# ## pandas' own plots
# %% a frame
import pandas as pd
pd.DataFrame({"a": [1, 3, 2]}).plot();
# shown: image/png
# %% a histogram
pd.Series([1, 2, 2, 3]).hist(bins=3);
# shown: image/png

# ## objects that show themselves
# %% methods
class Shown:
    def _repr_html_(self):
        return "<b>shown</b>"

    def __repr__(self):
        return "Shown()"


Shown()
# has: {"type": "Shown", "repr": "Shown()"}
# shown: text/html
# %% a method that fails
class Broken:
    def _repr_html_(self):
        raise ValueError

    def __repr__(self):
        return "Broken()"


display(Broken())
# shown:
# %% a style
import pandas as pd
pd.DataFrame({"a": [1, 2]}).style.background_gradient()
# has: {"type": "Styler"}
# shown: text/html

# ## widgets fall back
# %% not installed
import ipywidgets
# fails: ModuleNotFoundError at 1: ipywidgets
# %% rich text of sympy's kind
class Formula:
    def _repr_latex_(self):
        return "$x$"


Formula()
# has: {"type": "Formula"}
# shown: text/latex

# ## display of IPython's functions
# %% published
from IPython.display import publish_display_data
publish_display_data({"text/plain": "p", "text/html": "<p>"})
# shown: text/html
# %% a frame
from IPython.display import IFrame
IFrame("https://example.com", 100, 50)
# has: {"type": "IFrame"}
# shown: text/html
# %% a progress bar
from IPython.display import ProgressBar
bar = ProgressBar(3)
display(bar)
# shown: text/html

# ## a cell that only draws
# %% without a name
import matplotlib.pyplot as plt; plt.plot([1]); plt.show()
# shown: image/png
# %% a figure as the last value
fig, _ = plt.subplots()
fig
# has: {"type": "Figure"}
# shown: image/png
# %% an image
import numpy as np
plt.imshow(np.eye(3));
# shown: image/png

# ## an animation and a date
# %% dates
import pandas as pd
pd.Timestamp("2024-01-01")
# -> "2024-01-01T00:00:00"
# %% many plots
import matplotlib.pyplot as plt
for _ in range(3):
    plt.subplots(figsize=(1, 1))
# shown: image/png
# shown: image/png
# shown: image/png

# ## files of a notebook
# %% CSV and back
import pandas as pd
pd.DataFrame({"a": [1, 2]}).to_csv("t.csv", index=False)
pd.read_csv("t.csv").sum()["a"]
# -> 3
# %% Excel
pd.DataFrame({"a": [1]}).to_excel("/session/artifacts/t.xlsx", index=False)
# left: t.xlsx application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
# %% JSON
from pathlib import Path
import json
Path("d.json").write_text(json.dumps({"a": [1]}))
json.loads(Path("d.json").read_text())
# -> {"a": [1]}

# ## a table is cut as pandas' settings say
# %% short ones are whole
import pandas as pd
df = pd.DataFrame({"n": range(100)})
df.head(60)["n"]
# has: {"type": "Series", "shape": [60]}
# %% long ones say how much is missing
df
# has: {"type": "DataFrame", "shape": [100, 1]}
# shown: application/vnd.dataresource+json text/html
# cut: {"result": 90, "rows": 90}
# %% a column
df["n"]
# has: {"type": "Series", "head": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
# cut: {"result": 90}
# %% by the user's setting
pd.options.display.max_rows = 100
df
# has: {"type": "DataFrame", "shape": [100, 1]}
# shown: application/vnd.dataresource+json text/html
# %% in a display
pd.options.display.max_rows = 4
display(df.head(5))
# shown: application/vnd.dataresource+json text/html
# cut: {"rows": 1}
