declare module "plotly.js-strict-dist-min" {
  const Plotly: { newPlot(target: HTMLElement, figure: Record<string, unknown>): Promise<unknown> };
  export default Plotly;
}
