import type { Execution } from "../api/records";

// The commands that run the same code again. The key is not in them: these pages do not know it.

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function isEmpty(context: Record<string, unknown> | undefined): boolean {
  return !context || Object.keys(context).length === 0;
}

export function asCurl(e: Execution): string {
  const body: Record<string, unknown> = { code: e.code ?? "" };
  if (!isEmpty(e.context)) body["context"] = e.context;
  return [
    `curl -sS ${shellQuote(window.location.origin + "/sandbox/agent/quick-execute")}`,
    `-H "Authorization: Bearer $GLASSHOUSE_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d ${shellQuote(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

export function asPython(e: Execution): string {
  return `from glasshouse_sandbox import Client

code = ${pythonText(e.code ?? "")}

with Client(${JSON.stringify(window.location.origin)}) as client:  # the key is in GLASSHOUSE_KEY
    print(client.run(code).text)
`;
}

// pythonText returns a literal of a text, over several lines if that is readable.
function pythonText(text: string): string {
  if (!text.includes("\n") || /"""|\\|"$|[^\P{C}\n\t]/u.test(text)) return JSON.stringify(text);
  return `"""\\\n${text}"""`;
}
