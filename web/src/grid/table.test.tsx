// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { draw, leave } from "../testing/page";
import { json, serve } from "../testing/service";
import { RecordedTable } from "./table";

afterEach(leave);

test("the labels of a recorded table are not counted as a column", async () => {
  const columns = ["a", "b", "c"].map((name) => ({ name, dtype: "int64", missing: 0 }));
  const rows = [{ label: "0", cells: ["1", "2", "3"] }];
  serve(() => json({ table: { columns, rows, kept: 1, total_columns: 3 } }));
  const page = draw(<RecordedTable path="/executions/e/steps/1/objects/1" label="Rows of df" rows={1} columns={3} />);
  await vi.waitFor(() => expect(page.textContent).toContain("1 row, 3 columns"));
});
