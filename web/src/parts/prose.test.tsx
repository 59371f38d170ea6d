// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { draw } from "../testing/page";
import { Prose } from "./prose";

const html = (text: string) => draw(<Prose text={text} />).querySelector(".prose")!.innerHTML;
const code = (text: string, language = "") =>
  `<pre class="text" tabindex="0" role="group" aria-label="Code ${language}">${text}</pre>`;

test.each([
  ["One\ntwo\n\nthree", "<p>One\ntwo</p><p>three</p>"],
  ["# Title\ntext", "<p><strong>Title</strong></p><p>text</p>"],
  ["> a\n> b\n\n> c", "<blockquote><p>a\nb</p></blockquote><blockquote><p>c</p></blockquote>"],
  ["- a\n- b\n  more\ntext", "<ul><li>a</li><li>b\nmore</li></ul><p>text</p>"],
  ["3. a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'],
  ["**bold** and *slanted*, 2 * 3 * 4", "<p><strong>bold</strong> and <em>slanted</em>, 2 * 3 * 4</p>"],
  ["a ``b ` c`` d `e", "<p>a <code>b ` c</code> d `e</p>"],
  ["`**not bold**`", "<p><code>**not bold**</code></p>"],
])("%j is shown with its marks", (text, shown) => {
  expect(html(text)).toBe(shown);
});

test("code keeps its text as it is, even while its end is still to come", () => {
  expect(html("```python\nprint(1)\n# *x*\n```\nafter")).toBe(`${code("print(1)\n# *x*", "python")}<p>after</p>`);
  expect(html("~~~\na\n```\nb\n~~~")).toBe(code("a\n```\nb"));
  expect(html("```sql\nSELECT")).toBe(code("SELECT", "sql"));
});

test("a table has a heading, and numbers on the right", () => {
  const table = draw(<Prose text={"| city | n |\n|:---|---:|\n| *Rome* | 5 |\nafter"} />);
  expect([...table.querySelectorAll("th")].map((cell) => [cell.textContent, cell.className])).toEqual([
    ["city", ""],
    ["n", "number"],
  ]);
  expect([...table.querySelectorAll("td")].map((cell) => cell.innerHTML)).toEqual(["<em>Rome</em>", "5"]);
  expect(table.querySelector("p")?.textContent).toBe("after");
});

test("a line between bars without a rule below it is not a table", () => {
  expect(html("a | b\nc | d")).toBe("<p>a | b\nc | d</p>");
});

test("HTML, links and pictures of a model stay text", () => {
  const hostile =
    '<img src=x onerror="alert(1)"> [a](javascript:alert(1)) ![b](http://a.test/x.png)\n\n| <script>x</script> |\n|---|\n\n```html\n<b>\n```';
  const page = draw(<Prose text={hostile} />);
  expect(page.querySelectorAll("img, script, a, b, iframe")).toHaveLength(0);
  expect(page.textContent).toContain(
    '<img src=x onerror="alert(1)"> [a](javascript:alert(1)) ![b](http://a.test/x.png)',
  );
  expect(page.textContent).toContain("<script>x</script>");
});

test("a text of any form is shown whole, without a pattern that takes for ever", () => {
  for (const part of ["*", "`", "**a", "| ", "> ", "- ", "~~~", "_*`"]) {
    const text = `begin ${part.repeat(Math.floor(5000 / part.length))} end`;
    const shown = draw(<Prose text={text} />).textContent!;
    expect([shown.startsWith("begin"), shown.endsWith("end")], part).toEqual([true, true]);
  }
  expect(html("x".repeat(60_000))).toBe(code("x".repeat(60_000)));
});
