import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import { asCurl, asPython } from "./execution_commands";

const execution = (code: string, context = {}) => ({ code, context }) as Execution;
const codes = [
  "print(1)",
  "a = 'it''s'\nb = \"$HOME `id` $(id)\" \\\n",
  'text = """x"""\nprint(1)',
  'a = 1\nb = "ends with a quote"',
  "tab\t and ü😀\n\nx\\n",
  "control \x1b\nx",
];

test.each(codes)("a shell gives curl exactly the code %j", (code) => {
  const script = `curl() { for last; do :; done; printf %s "$last"; }; ${asCurl(execution(code, { n: 1 }))}`;
  const body = execFileSync("sh", ["-c", script], { encoding: "utf8" });
  expect(JSON.parse(body)).toEqual({ code, context: { n: 1 } });
});

test("the command has no key, and no empty context", () => {
  const command = asCurl(execution("1"));
  expect(command).toContain('"Authorization: Bearer $GLASSHOUSE_KEY"');
  expect(command).toContain("'http://glasshouse.test/sandbox/agent/quick-execute'");
  expect(command).not.toContain("context");
});

// Python and JSON read the escapes of such a literal in the same way.
test.each(codes)("the program has exactly the code %j", (code) => {
  const literal = /code = ([\s\S]*?)\n\nwith Client\("http:\/\/glasshouse.test"\)/.exec(asPython(execution(code)))![1]!;
  const value = literal.startsWith('"""\\\n') ? literal.slice(5, -3) : (JSON.parse(literal) as string);
  expect(value).toBe(code);
  if (literal.startsWith('"""')) expect(value).not.toMatch(/\\|"""|"$/); // which would be read in another way
});

test("a program of several lines is readable", () => {
  expect(asPython(execution("a = 1\nprint(a)"))).toContain('code = """\\\na = 1\nprint(a)"""\n');
});
