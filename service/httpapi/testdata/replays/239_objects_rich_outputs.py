import pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": [.5, .25]})
display(df)
display(df.style.highlight_max())
from IPython.display import HTML, Markdown
display(HTML("<b>bold</b>"), Markdown("*it*"))
import plotly.express as px
fig = px.bar(x=["u", "v"], y=[1, 3])
html = fig.to_html(full_html=False, include_plotlyjs=False)
print(html[:120])
fig.layout.template.layout.font.color
