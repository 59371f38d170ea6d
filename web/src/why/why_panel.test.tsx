// @vitest-environment happy-dom
import { afterEach, expect, test } from "vitest";
import type { Why } from "../api/records";
import { draw, leave } from "../testing/page";
import { WhyPanel } from "./why_panel";

afterEach(leave);

const did = (line: number) => ({
  line,
  column: 0,
  code: `f(${line})`,
  kind: "value",
  score: 30,
  text: "2 values: 1 int, 1 None",
});

function panelOf(why: Partial<Why>): HTMLElement {
  const answer = { name: "n", findings: [], steps: [], limits: [], not_looked_at: [], replay_id: "r", ...why } as Why;
  const asked = { why: answer, problem: undefined, isLooking: false, look: () => {} };
  const link = ({ line, step }: { line: number; step: number }, text: string) => (
    <a href={`#${line}-${step}`}>{text}</a>
  );
  return draw(<WhyPanel asked={asked} path="/executions/e" ms={1} jump={link} />);
}

test("every line of an answer is a link", () => {
  const page = panelOf({
    findings: [{ kind: "replaced", line_number: 4, text: "57 became 0", score: 72 }],
    facts: [did(7), did(8)],
    cell: {
      value: "1",
      ends: "",
      from: [{ line: 2, code: "c", what: "w", rows: [], total_rows: 0, of: 0, cells: [], total_cells: 0, times: 1 }],
    },
  });
  const lines = [...page.querySelectorAll(".why-line")];
  expect(lines.map((e) => e.innerHTML)).toEqual([
    '<a href="#4-0">line 4</a>',
    '<a href="#2-0">line 2</a>',
    '<a href="#8-0">line 8</a>',
    '<a href="#7-0">line 7</a>',
  ]);
});

test("what lines did is folded if it is of more than four lines", () => {
  expect(panelOf({ facts: [1, 2, 3, 4].map(did) }).querySelector("details")).toBeNull();
  const folded = panelOf({ facts: [1, 2, 3, 4, 5].map(did) }).querySelector("details");
  expect(folded?.querySelector("summary")?.textContent).toBe("What these 5 lines did");
  expect(folded?.open).toBe(false);
});
