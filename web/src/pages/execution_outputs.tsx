import type { ComponentChildren } from "preact";
import type { Artifact, Output } from "../api/records";
import { asText } from "../format";
import { Figure, figureType, StoredFigure } from "../parts/figure";
import { framed } from "../parts/frame";
import { Panel } from "../parts/panel";
import { RowTable, Value } from "../parts/value";

// A rich output is a bundle of forms of the same value. The page shows the best form that it can show safely: pictures
// as pictures, which run no scripts; figures of Plotly in a frame that has no network; tables as tables; HTML in a frame
// that may do nothing; anything else as text.

const references = "application/vnd.glasshouse.artifact+json";
const tableType = "application/vnd.dataresource+json";
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join("") : asText(value);
}

function pictureAddress(type: string, value: unknown): string {
  const text = textOf(value);
  if (type === "image/svg+xml") return `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
  return `data:${type};base64,${text.replace(/\s/g, "")}`;
}

export function Outputs({ outputs }: { outputs: Output[] }) {
  return (
    <>
      {outputs.map((output, index) => (
        <OutputPanel key={index} output={output} />
      ))}
    </>
  );
}

export function OutputPanel({ output, actions }: { output: Output; actions?: ComponentChildren }) {
  return (
    <Panel title={titles[output.role ?? ""] ?? "Output"} note={output.summary} actions={actions}>
      <Shown output={output} />
    </Panel>
  );
}

const titles: Record<string, string> = { result: "Last value", display: "Shown", figure: "Figure" };

function Shown({ output }: { output: Output }) {
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
  if (table) return <RowTable {...table} label={summary} />;
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
}

// tableOf returns the rows of a tabular data resource with their columns, or undefined for anything else.
function tableOf(value: unknown) {
  const resource = value as Resource | undefined;
  const fields = resource?.schema?.fields;
  const rows = resource?.data;
  if (!Array.isArray(fields) || !Array.isArray(rows) || !rows.every((row) => typeof row === "object" && row !== null))
    return undefined;
  const dtypes = Array.isArray(resource?.dtypes) ? resource.dtypes : [];
  const indexes = fields.length - dtypes.length;
  const [total, width] = Array.isArray(resource?.shape) ? resource.shape.map(Number) : [];
  return {
    rows: rows as Record<string, unknown>[],
    columns: fields.map((field) => String(field?.name)),
    types: fields.map((field, index) => String(dtypes[index - indexes] ?? field?.extDtype ?? field?.type ?? "")),
    total: Number.isFinite(total) ? total : undefined,
    totalColumns: width !== undefined && Number.isFinite(width) && dtypes.length > 0 ? width + indexes : undefined,
  };
}
