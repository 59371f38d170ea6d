import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Artifact } from "../api/records";
import { bytes } from "../format";
import { Failure, Loading } from "./feedback";

// Figures of Plotly are drawn in a frame that has its own policy and origin (plot.ts), and loads the library there.
// The page passes the figure to the frame and takes no message from it.

export const figureType = "application/vnd.plotly.v1+json";

export interface FigureMessage {
  data: unknown[];
  layout: Record<string, unknown>;
  frames: unknown[];
  dark?: boolean; // the scheme of the page
}

const defaultHeight = 450; // pixels
const minHeight = 200;
const maxHeight = 1000;
const maxStored = 64 << 20; // bytes of a figure that a browser draws

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// messageOf returns the parts of a figure that are drawn, or undefined for anything else.
function messageOf(figure: unknown): FigureMessage | undefined {
  if (!isRecord(figure) || !Array.isArray(figure["data"])) return undefined;
  const { layout, frames } = figure;
  return { data: figure["data"], layout: isRecord(layout) ? layout : {}, frames: Array.isArray(frames) ? frames : [] };
}

function heightOf({ layout }: FigureMessage): number {
  const height = layout["height"];
  return typeof height === "number" ? Math.min(maxHeight, Math.max(minHeight, Math.round(height))) : defaultHeight;
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

// Figure draws a figure of Plotly.
export function Figure({ of, label }: { of: unknown; label: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [isDrawn, setDrawn] = useState(false); // the frame has its script, and draws
  const message = messageOf(of);
  if (!message) return <p class="muted body">This figure has no data that Plotly could draw.</p>;
  // The frame's origin is opaque: no other address names it.
  const send = () => {
    frame.current?.contentWindow?.postMessage({ ...message, dark: isDark() }, "*");
    setDrawn(true);
  };
  return (
    <>
      {!isDrawn && <Loading what="the figure" />}
      <iframe
        ref={frame}
        class="plot"
        sandbox="allow-scripts"
        title={`Figure: ${label}`}
        src="/ui/plot.html"
        height={heightOf(message)}
        onLoad={send}
      />
    </>
  );
}

// StoredFigure draws a figure that is too large for a record, and is a file.
export function StoredFigure({ of: artifact, label }: { of: Artifact; label: string }) {
  const [figure, setFigure] = useState<unknown>();
  const [problem, setProblem] = useState<Problem>();
  const isTooLarge = artifact.size > maxStored;
  useEffect(() => {
    if (isTooLarge) return;
    const request = new AbortController();
    get<unknown>(artifact.url, {}, request.signal).then(setFigure, (thrown) => {
      if (!isAborted(thrown)) setProblem(Problem.from(thrown));
    });
    return () => request.abort();
  }, [artifact.url]);
  if (problem) return <Failure problem={problem} />;
  if (isTooLarge) {
    return (
      <p class="body">
        This figure has {bytes(artifact.size)}, which is too much for a browser.{" "}
        <a href={artifact.url} download>
          Download its JSON
        </a>
        , or run the code again with fewer points.
      </p>
    );
  }
  return figure === undefined ? <Loading what="the figure" /> : <Figure of={figure} label={label} />;
}
