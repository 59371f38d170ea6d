import { count, plural } from "../format";
import type { Sample } from "./answer";

const isNumber = (value: string | null | undefined) => value == null || /^-?\d+(\.\d+)?$/.test(value);

// SampleTable shows a few rows. Several columns may have one name.
export function SampleTable({ of, label }: { of: Sample; label: string }) {
  const numbers = of.columns.map((_, c) => of.rows.every((row) => isNumber(row[c])) && of.rows.some((row) => row[c]));
  return (
    <div class="scroll-x sample" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {of.columns.map((name, c) => (
              <th key={c} scope="col" class={numbers[c] ? "number" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.rows.map((row, n) => (
            <tr key={n}>
              {row.map((value, c) => (
                <td key={c} class={numbers[c] ? "number" : ""}>
                  <Value of={value} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {of.more_columns ? <p class="muted">and {plural(of.more_columns, "more column")}</p> : null}
    </div>
  );
}

function Value({ of }: { of: string | null }) {
  if (of === null) return <span class="sample-none">NULL</span>;
  if (of === "") return <span class="sample-none">empty</span>;
  if (of === "***")
    return (
      <span class="sample-none" title="A masked column">
        ***
      </span>
    );
  return <>{of}</>;
}

// shownOf says how many of some rows a sample has.
export function shownOf(sample: Sample, rows: number | undefined): string {
  const shown = sample.rows.length;
  return rows === undefined || rows === shown ? plural(shown, "row") : `${count(shown)} of ${plural(rows, "row")}`;
}
