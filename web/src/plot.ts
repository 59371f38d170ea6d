import Plotly from "plotly.js-strict-dist-min";
import type { FigureMessage } from "./parts/figure";

// The script of plot.html, a frame that draws one figure of Plotly. What is in the figure is hostile. The frame's
// sandbox gives it an origin of its own, without cookies and storage; its policy lets it load nothing but this script.
// It takes messages from the page that has embedded it and sends none.

const options = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  showEditInChartStudio: false,
  modeBarButtonsToRemove: ["toImage", "sendDataToCloud"], // the sandbox allows no downloads
};

const ground = "#0e1113";
const line = "#2b3238";
const text = "#e6e9ec";

// darkened returns a layout with the colours of the dark scheme where the figure's own layout has none. Those of its
// template are for a light page.
function darkened(layout: Record<string, unknown>): Record<string, unknown> {
  const part = (name: string) => (layout[name] ?? {}) as Record<string, unknown>;
  const out: Record<string, unknown> = {
    paper_bgcolor: ground,
    plot_bgcolor: ground,
    ...layout,
    font: { color: text, ...part("font") },
  };
  const axes = Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
  for (const name of new Set(["xaxis", "yaxis", ...axes]))
    out[name] = { gridcolor: line, linecolor: line, zerolinecolor: line, ...part(name) };
  return out;
}

async function draw({ data, layout, frames, dark }: FigureMessage): Promise<void> {
  const target = document.createElement("div");
  target.style.height = "100vh";
  document.body.style.margin = "0";
  document.body.replaceChildren(target);
  // The frame has the size; the page has taken the figure's own height into account.
  const fitted = { ...(dark ? darkened(layout) : layout), autosize: true, width: undefined, height: undefined };
  try {
    await Plotly.newPlot(target, { data, layout: fitted, frames, config: options });
  } catch (thrown) {
    document.body.textContent = `Plotly cannot draw this figure: ${String(thrown)}`;
  }
}

window.addEventListener("message", (event: MessageEvent<FigureMessage>) => {
  const isFromPage =
    window.parent !== window && event.source === window.parent && event.origin === window.location.origin;
  if (isFromPage) void draw(event.data);
});
