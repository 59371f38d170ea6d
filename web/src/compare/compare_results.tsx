import type { Execution, Output } from "../api/records";
import { asText, count, plural } from "../format";
import { OutputPanel, tableOf, tableType } from "../pages/execution_outputs";
import { Panel } from "../parts/panel";
import { isTable } from "../parts/value";
import type { Pair } from "./compare";
import { change, diffTables } from "./diff";

const maxText = 2000; // characters of a value

type Rows = Record<string, unknown>[];

// rowsOf returns the rows of an output, or of the result, that the record keeps.
const rowsOf = (output: Output | undefined, result: unknown): Rows | undefined =>
  output ? shownRows(output) : isTable(result) ? result : undefined;

// shownRows returns the rows of a table without the column that only counts them.
function shownRows(output: Output): Rows | undefined {
  const table = tableOf(output.data[tableType]);
  return table?.rows.map((row) => Object.fromEntries(table.columns.map((name) => [name, row[name]])));
}

// Results compares the results, and the outputs in their order.
export function Results({ of: { left, right } }: { of: Pair }) {
  const number = Math.max(left.outputs.length, right.outputs.length);
  const hasResult = ({ outputs }: Execution) => outputs.some(({ role }) => role === "result");
  return (
    <>
      {!hasResult(left) && !hasResult(right) && (left.result !== null || right.result !== null) && (
        <Value title="Result" left={left.result} right={right.result} />
      )}
      {Array.from({ length: number }, (_, n) => (
        <OutputPair key={n} left={left} right={right} number={n} />
      ))}
    </>
  );
}

function Value({ title, left, right }: { title: string; left: unknown; right: unknown }) {
  const [a, b] = [rowsOf(undefined, left), rowsOf(undefined, right)];
  if (a && b) return <Tables title={title} left={a} right={b} />;
  const texts = [asText(left), asText(right)];
  if (texts[0] === texts[1]) return <p class="compare-same muted">{title}: the same value</p>;
  return (
    <Panel title={title} note="differs">
      <div class="values">
        <pre class="text left" tabIndex={0} role="group" aria-label={`${title}, left`}>
          {texts[0]!.slice(0, maxText)}
        </pre>
        <pre class="text right" tabIndex={0} role="group" aria-label={`${title}, right`}>
          {texts[1]!.slice(0, maxText)}
        </pre>
      </div>
    </Panel>
  );
}

function OutputPair({ left, right, number }: { left: Execution; right: Execution; number: number }) {
  const [a, b] = [left.outputs[number], right.outputs[number]];
  const title = a?.role === "result" || b?.role === "result" ? "Last value" : `Output ${number + 1}`;
  const [rows, otherRows] = [rowsOf(a, null), rowsOf(b, null)];
  if (rows && otherRows) return <Tables title={title} left={rows} right={otherRows} />;
  if (a && b && JSON.stringify(a.data) === JSON.stringify(b.data))
    return (
      <p class="compare-same muted">
        {title}: the same {a.summary}
      </p>
    );
  return (
    <div class="sides">
      {a ? <OutputPanel output={a} execution={left.execution_id} /> : <p class="muted">No such output at the left.</p>}
      {b ? (
        <OutputPanel output={b} execution={right.execution_id} />
      ) : (
        <p class="muted">No such output at the right.</p>
      )}
    </div>
  );
}

// Tables lists the cells that differ.
function Tables({ title, left, right }: { title: string; left: Rows; right: Rows }) {
  const { cells, total, compared, onlyLeft, onlyRight, label } = diffTables(left, right);
  const notes = [
    left.length !== right.length && `${plural(left.length, "row")} at the left, ${count(right.length)} at the right`,
    onlyLeft.length > 0 && `only at the left: ${onlyLeft.join(", ")}`,
    onlyRight.length > 0 && `only at the right: ${onlyRight.join(", ")}`,
  ].filter(Boolean);
  if (total === 0 && notes.length === 0)
    return (
      <p class="compare-same muted">
        {title}: the same {plural(compared, "cell")} in {plural(left.length, "row")}
      </p>
    );
  return (
    <Panel title={title} note={`${count(total)} of ${plural(compared, "cell")} differ`}>
      {notes.length > 0 && <p class="cut">{notes.join("; ")}</p>}
      {cells.length > 0 && (
        <div class="scroll-x cells" tabIndex={0} role="group" aria-label={`Cells of ${title} that differ`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Row</th>
                <th scope="col">Column</th>
                <th scope="col" class="number">
                  Left
                </th>
                <th scope="col" class="number">
                  Right
                </th>
                <th scope="col">Change</th>
              </tr>
            </thead>
            <tbody>
              {cells.map((cell) => (
                <tr key={`${cell.row} ${cell.column}`}>
                  <td>
                    {label && <strong>{asText(left[cell.row]![label])}</strong>}{" "}
                    <span class="muted">row {count(cell.row + 1)}</span>
                  </td>
                  <th scope="row">{cell.column}</th>
                  <td class="left mono">{shown(cell.left)}</td>
                  <td class="right mono">{shown(cell.right)}</td>
                  <td class="muted">
                    {typeof cell.left === "number" && typeof cell.right === "number" && change(cell.left, cell.right)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {total > cells.length && <p class="cut">{plural(total - cells.length, "more cell")} differ.</p>}
    </Panel>
  );
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 12 });

const shown = (cell: unknown) =>
  typeof cell === "number"
    ? numbers.format(cell)
    : cell === undefined
      ? ""
      : cell === null
        ? "NULL"
        : asText(cell).slice(0, 300);
