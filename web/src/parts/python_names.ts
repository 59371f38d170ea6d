import { pythonLanguage } from "@codemirror/lang-python";
import type { SyntaxNode } from "@lezer/common";

// This module is loaded with the editor, whose parser it uses.

// Assignment is a line that sets a variable.
export interface Assignment {
  line: number; // where the statement begins
  name: string;
  scope: string; // the name of the function, or "<module>"
  isParameter: boolean; // set by the call, before the first line of the function
}

export interface Names {
  assignments: Assignment[];
  prints: number[]; // the lines that call print
}

// namesOf returns which lines of a program set variables, and which print.
export function namesOf(code: string): Names {
  const starts = [0];
  for (let at = code.indexOf("\n"); at >= 0; at = code.indexOf("\n", at + 1)) starts.push(at + 1);
  const lineOf = (at: number) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= at) low = middle;
      else high = middle;
    }
    return low + 1;
  };
  const assignments: Assignment[] = [];
  const prints = new Set<number>();
  const text = (node: SyntaxNode) => code.slice(node.from, node.to);
  const add = (target: SyntaxNode, statement: SyntaxNode, isParameter = false) => {
    for (const name of targets(target))
      assignments.push({
        line: lineOf(statement.from),
        name: text(name),
        scope: scopeOf(isParameter ? name : statement, text),
        isParameter,
      });
  };
  pythonLanguage.parser.parse(code).iterate({
    enter: ({ name, node }) => {
      if (name === "AssignStatement" || name === "UpdateStatement") {
        // Each target is before a sign of assignment; the value is behind the last one.
        for (let child = node.firstChild; child; child = child.nextSibling) {
          let after = child.nextSibling;
          while (after && !/^(AssignOp|UpdateOp)$/.test(after.name)) after = after.nextSibling;
          if (after) add(child, node);
        }
      } else if (name === "ForStatement") {
        for (let child = node.firstChild; child && child.name !== "in"; child = child.nextSibling) add(child, node);
      } else if (name === "WithStatement") {
        for (let child = node.firstChild; child; child = child.nextSibling)
          if (child.prevSibling?.name === "as") add(child, node);
      } else if (name === "ParamList" && node.parent?.name === "FunctionDefinition") {
        for (let child = node.firstChild; child; child = child.nextSibling)
          if (child.name === "VariableName" && child.prevSibling?.name !== "AssignOp") add(child, node.parent, true);
      } else if (name === "CallExpression" && node.firstChild && text(node.firstChild) === "print") {
        prints.add(lineOf(statementOf(node).from));
      }
    },
  });
  return { assignments, prints: [...prints] };
}

// targets returns the variables that an assignment to a node sets or changes.
function targets(node: SyntaxNode): SyntaxNode[] {
  if (node.name === "VariableName") return [node];
  if (node.name === "MemberExpression") return node.firstChild ? targets(node.firstChild) : [];
  if (!/^(TupleExpression|ArrayExpression|ParenthesizedExpression)$/.test(node.name)) return [];
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) found.push(...targets(child));
  return found;
}

function scopeOf(node: SyntaxNode, text: (node: SyntaxNode) => string): string {
  for (let outer = node.parent; outer; outer = outer.parent)
    if (outer.name === "FunctionDefinition") {
      const name = outer.getChild("VariableName");
      return name ? text(name) : "";
    }
  return "<module>";
}

function statementOf(node: SyntaxNode): SyntaxNode {
  let statement = node;
  while (statement.parent && !/^(Body|Script)$/.test(statement.parent.name)) statement = statement.parent;
  return statement;
}
