import type { ComponentChildren } from "preact";
import type { Artifact, Execution, Output } from "../api/records";
import { asText } from "../format";
import type { Ask } from "../grid/grid_bar";
import { Figure, figureType, StoredFigure } from "../parts/figure";
import { framed } from "../parts/frame";
import { Panel } from "../parts/panel";
import { RowTable } from "../parts/table";
import { Value } from "../parts/value";

// A rich output is a bundle of forms of the same value. The page shows the best form that it can show safely: pictures
// as pictures, which run no scripts; figures of Plotly in a frame that has no network; tables as tables; HTML in a frame
// that may do nothing; anything else as text.

const references = "application/vnd.glasshouse.artifact+json";
export const tableType = "application/vnd.dataresource+json";
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join("") : asText(value);
}

function pictureAddress(type: string, value: unknown): string {
  const text = textOf(value);
  if (type === "image/svg+xml") return `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
  return `data:${type};base64,${text.replace(/\s/g, "")}`;
}

// Outputs shows the outputs of an execution. Without its id, the tables have the rows of the outputs only.
export function Outputs({ outputs, execution }: { outputs: Output[]; execution?: string | undefined }) {
  return (
    <>
      {outputs.map((output, index) => (
        <OutputPanel key={index} output={output} execution={execution} />
      ))}
    </>
  );
}

export function OutputPanel(props: {
  output: Output;
  execution?: string | undefined;
  actions?: ComponentChildren;
  onAsk?: AskTable | undefined;
}) {
  const { output, execution, actions, onAsk } = props;
  return (
    <Panel title={titles[output.role ?? ""] ?? "Output"} note={output.summary} actions={actions}>
      <Shown output={output} execution={execution} onAsk={onAsk} />
    </Panel>
  );
}

// AskTable asks why a cell of a table has its value. column is the number among the columns without the labels of rows.
export type AskTable = (row: number, column: { name: string; index: number }) => void;

const titles: Record<string, string> = { result: "Last value", display: "Shown", figure: "Figure" };

// tablePath returns the path of the rows of a table that an execution returned, whose number is 0, or showed.
export function tablePath(execution: string, number: number): string {
  return `/executions/${encodeURIComponent(execution)}/tables/${number}/rows`;
}

// resultPath returns the path of the rows of a result of which the record has a part.
export function resultPath(e: Execution): string | undefined {
  return e.truncated["result"] ? tablePath(e.execution_id, 0) : undefined;
}

// whyCell is the question why a cell of a result has its value.
export const whyCell = (cell: Ask["cell"]): Ask => ({
  label: "Why this cell?",
  title: "what its value comes from",
  cell,
});

function Shown(props: { output: Output; execution: string | undefined; onAsk: AskTable | undefined }) {
  const { output, execution, onAsk } = props;
  const { data, summary } = output;
  const stored = (data[references] ?? {}) as Record<string, Artifact>;
  for (const type of pictures) {
    const address = data[type] !== undefined ? pictureAddress(type, data[type]) : stored[type]?.url;
    if (address)
      return (
        <div class="picture">
          <img src={address} alt={summary} />
        </div>
      );
  }
  if (data[figureType] !== undefined) return <Figure of={data[figureType]} label={summary} />;
  if (stored[figureType]) return <StoredFigure of={stored[figureType]} label={summary} />;
  const table = tableOf(data[tableType]);
  if (table) {
    const number = output.role === "result" ? 0 : table.number;
    const remote = execution && number !== undefined ? tablePath(execution, number) : undefined;
    const ask = whyCell(({ row, column: name }) => {
      const index = table.columns.indexOf(name) - table.labels;
      if (index >= 0) onAsk?.(row, { name, index });
    });
    return <RowTable {...table} label={summary} remote={remote} ask={onAsk && ask} />;
  }
  if (data["text/html"] !== undefined) {
    return (
      <iframe
        class="html"
        sandbox=""
        title={`HTML that the code has shown: ${summary}`}
        srcdoc={framed(textOf(data["text/html"]))}
      />
    );
  }
  if (data["application/json"] !== undefined) return <Value of={data["application/json"]} label={summary} />;
  const text = data["text/markdown"] ?? data["text/latex"] ?? data["text/plain"];
  const files = Object.entries(stored);
  return (
    <>
      {text !== undefined && (
        <pre class="text" tabIndex={0} role="group" aria-label={summary}>
          {textOf(text)}
        </pre>
      )}
      {files.map(([type, artifact]) => (
        <p key={type} class="body">
          <a href={artifact.url} download>
            {type}
          </a>
          , stored as a file because of its size
        </p>
      ))}
    </>
  );
}

interface Resource {
  schema?: { fields?: ({ name?: unknown; type?: unknown; extDtype?: unknown } | null)[] };
  data?: unknown;
  shape?: unknown; // of the whole table, of which data has the first rows and columns
  dtypes?: unknown; // of the columns after those of the index
  number?: unknown; // of the table among those of the execution that are shown in part
}

// onlyCounts reports whether the first column is an index that has the numbers of the rows, which the grid shows anyway.
function onlyCounts(fields: ({ name?: unknown } | null)[], rows: Record<string, unknown>[]): boolean {
  return fields.length > 1 && fields[0]?.name === "index" && rows.every((row, n) => row["index"] === n);
}

// tableOf returns the rows of a tabular data resource with their columns, or undefined for anything else.
export function tableOf(value: unknown) {
  const resource = value as Resource | undefined;
  const fields = resource?.schema?.fields;
  const rows = resource?.data;
  if (!Array.isArray(fields) || !Array.isArray(rows) || !rows.every((row) => typeof row === "object" && row !== null))
    return undefined;
  const dtypes = Array.isArray(resource?.dtypes) ? resource.dtypes : [];
  const indexes = fields.length - dtypes.length;
  const [total, width] = Array.isArray(resource?.shape) ? resource.shape.map(Number) : [];
  const hidden = onlyCounts(fields, rows as Record<string, unknown>[]) ? 1 : 0;
  const shown = fields.slice(hidden);
  return {
    rows: rows as Record<string, unknown>[],
    columns: shown.map((field) => String(field?.name)),
    types: shown.map((field, index) =>
      String(dtypes[index + hidden - indexes] ?? field?.extDtype ?? field?.type ?? ""),
    ),
    labels: indexes - hidden, // columns of labels, which come first
    number: typeof resource?.number === "number" ? resource.number : undefined,
    total: Number.isFinite(total) ? total : undefined,
    totalColumns:
      width !== undefined && Number.isFinite(width) && dtypes.length > 0 ? width + indexes - hidden : undefined,
  };
}
