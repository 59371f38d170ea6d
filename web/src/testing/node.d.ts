// What the tests use of Node, in which they run. The types of all of Node would be there for the pages, too.

declare module "node:child_process" {
  export function execFileSync(file: string, args: string[], options: { encoding: "utf8" }): string;
}

declare function setImmediate(call: (value?: unknown) => void): void;
