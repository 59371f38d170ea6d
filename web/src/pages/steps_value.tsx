import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { RecordedObject } from "../api/records";
import { count, plural } from "../format";
import { Failure } from "../parts/feedback";
import { Pager } from "../parts/pager";
import { Panel } from "../parts/panel";
import { RecordedTable } from "../parts/table";

const pageSize = 50;

// Contents shows what a recording has of an object at a step: a table, or a list of parts.
export function Contents(props: {
  path: string;
  step: number;
  name: string;
  reference: number;
  length: number | undefined;
}) {
  const { path, step, name, reference, length } = props;
  const [start, setStart] = useState(0);
  const [page, setPage] = useState<{ object: RecordedObject; first: number }>(); // the note is of the rows that are shown
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => setStart(0), [reference]);
  useEffect(() => {
    const request = new AbortController();
    get<RecordedObject>(`${path}/steps/${step}/objects/${reference}`, { start, count: pageSize }, request.signal).then(
      (got) => {
        setPage({ object: got, first: start });
        setProblem(undefined);
      },
      (thrown) => isAborted(thrown) || setProblem(Problem.from(thrown)),
    );
    return () => request.abort();
  }, [path, step, reference, start]);
  if (problem) return <Failure problem={problem} />;
  if (!page) return null;
  const { object, first } = page;
  const kept = object.table?.kept ?? object.kept;
  const what = object.table ? "row" : "item";
  const all = Math.max(kept, length ?? 0);
  const last = Math.min(first + pageSize, kept);
  const note =
    (kept === 0 || object.table || last - first === all
      ? plural(all, what)
      : `${what}s ${count(first + 1)} to ${count(last)} of ${count(all)}`) +
    (kept === 0 && all > 0
      ? "; they were not recorded"
      : kept < all
        ? `; the first ${count(kept)} were recorded`
        : "") +
    (object.exactness === "sampled" ? "; changes are found by samples" : "");
  return (
    <Panel title={`Contents of ${name}`} note={note}>
      {object.table ? (
        <RecordedTable
          path={`${path}/steps/${step}/objects/${reference}`}
          label={`Rows of ${name}`}
          columns={object.table.total_columns}
          rows={all}
        />
      ) : (
        <div class="scroll-x data" tabIndex={0} role="group" aria-label={`Contents of ${name}`}>
          <table>
            <tbody>
              {(object.items ?? []).map((item, index) => (
                <tr key={index}>
                  <th scope="row" class="mono">
                    {item.name}
                  </th>
                  <td>
                    <code>{item.value}</code>
                  </td>
                  <td class="muted">{item.type}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!object.table && <Pager what={what} start={start} size={pageSize} total={kept} go={setStart} />}
    </Panel>
  );
}
