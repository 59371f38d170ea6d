import { expect, test } from "vitest";
import { cellOf, csvLine, grouped, kindOf, shownCell, tabbed } from "./cell";

test("numbers have separators, and keep all digits", () => {
  expect(grouped("1234567.8901")).toBe("1,234,567.8901");
  expect(grouped("-9007199254740995")).toBe("-9,007,199,254,740,995");
  expect(grouped("12")).toBe("12");
  expect(grouped("1e+21")).toBe("1e+21");
  expect(shownCell("12345.50", "number")).toEqual({ text: "12,345.50", look: "number", isCut: false });
  expect(shownCell("12345", "text").text).toBe("12345");
});

test("NULL, NaN, the empty text and the texts with these words are told apart", () => {
  const shown = [null, cellOf({ type: "float", repr: "nan" }), "", "NULL", "NaN"].map((cell) =>
    shownCell(cell, "text"),
  );
  expect(shown.map(({ text, look }) => [text, look])).toEqual([
    ["NULL", "none"],
    ["NaN", "none"],
    ["empty", "none"],
    ["NULL", ""],
    ["NaN", ""],
  ]);
});

test("a column of numbers and of decimals, which are texts, is one of numbers", () => {
  expect(kindOf([1, null, "12.50", { nan: "nan" }])).toBe("number");
  expect(kindOf(["01234", "56789"])).toBe("text"); // codes
  expect(kindOf(["12.50"], "numeric")).toBe("number");
  expect(kindOf([{ json: {} }, null])).toBe("json");
  expect(kindOf([true, null])).toBe("bool");
  expect(kindOf([1, "x"])).toBe("text");
});

test("a CSV file tells NULL from the empty text, and quotes what it must", () => {
  const cells = [null, "", 'a "b", c', "two\nlines", "12345.5", { json: { a: 1 } }, { nan: "nan" }];
  expect(csvLine(cells)).toBe(',"","a ""b"", c","two\nlines",12345.5,"{""a"":1}",nan\r\n');
  expect(
    tabbed([
      [1, "a\tb"],
      [null, ""],
    ]),
  ).toBe('1\t"a\tb"\n\t');
});

test("a long text is shown in one line, and is cut", () => {
  const shown = shownCell("line\n".repeat(100), "text");
  expect(shown.text).not.toContain("\n");
  expect(shown.isCut).toBe(true);
});
