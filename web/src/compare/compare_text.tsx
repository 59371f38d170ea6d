import { useMemo, useState } from "preact/hooks";
import { plural } from "../format";
import { Panel } from "../parts/panel";
import { type DiffLine, diffLines, folded } from "./diff";

const maxLines = 2000; // that are drawn

// TextDiff shows two texts side by side, with the lines that differ. Texts that are equal are only named.
export function TextDiff(props: { title: string; left: string; right: string; isCode?: boolean }) {
  const { title, left, right, isCode } = props;
  const lines = useMemo(() => diffLines(left, right), [left, right]);
  if (!left && !right) return null;
  const number = lines.filter(({ kind }) => kind !== "same").length;
  if (number === 0)
    return (
      <p class="compare-same muted">
        {title}: the same {plural(lines.length, "line")}
      </p>
    );
  return (
    <Panel title={title} note={`${plural(number, "line")} of ${lines.length} differ${number === 1 ? "s" : ""}`}>
      <div class="scroll-x" tabIndex={0} role="group" aria-label={`Differences of ${title}`}>
        <table class={isCode ? "diff code" : "diff"}>
          <colgroup>
            <col class="line-number" />
            <col />
            <col class="line-number" />
            <col />
          </colgroup>
          <thead class="visually-hidden">
            <tr>
              <th scope="col">Line, left</th>
              <th scope="col">Left</th>
              <th scope="col">Line, right</th>
              <th scope="col">Right</th>
            </tr>
          </thead>
          <tbody>
            {folded(lines.slice(0, maxLines)).map((part, index) =>
              Array.isArray(part) ? (
                part.map((line, n) => <Line key={`${index} ${n}`} of={line} />)
              ) : (
                <Hidden key={index} lines={part.hidden} />
              ),
            )}
          </tbody>
        </table>
      </div>
      {lines.length > maxLines && (
        <p class="cut">{plural(lines.length - maxLines, "more line")} are not compared here.</p>
      )}
    </Panel>
  );
}

// Hidden stands for equal lines, until somebody wants to see them.
function Hidden({ lines }: { lines: DiffLine[] }) {
  const [isShown, setShown] = useState(false);
  if (isShown) return lines.map((line, n) => <Line key={n} of={line} />);
  return (
    <tr class="hidden-lines">
      <td colSpan={4}>
        <button class="link" onClick={() => setShown(true)}>
          {plural(lines.length, "equal line")}
        </button>
      </td>
    </tr>
  );
}

const signs = { same: "", removed: "−", added: "+", changed: "" };

function Line({ of: { kind, left, right, leftNumber, rightNumber } }: { of: DiffLine }) {
  return (
    <tr class={kind}>
      <td class="line-number">{leftNumber || ""}</td>
      <td class={left === undefined ? "nothing" : "left"}>
        <span class="sign" aria-hidden="true">
          {kind === "changed" ? "−" : kind === "removed" ? signs.removed : ""}
        </span>
        {left}
      </td>
      <td class="line-number">{rightNumber || ""}</td>
      <td class={right === undefined ? "nothing" : "right"}>
        <span class="sign" aria-hidden="true">
          {kind === "changed" ? "+" : kind === "added" ? signs.added : ""}
        </span>
        {right}
      </td>
    </tr>
  );
}
