import {
  acceptCompletion,
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { type Diagnostic, forceLinting, linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { EditorState, Prec, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { characters, units } from "./characters";
import type { LineMark } from "./code";
import { decorations, highlighting, largeEdits, specialCharacters, theme } from "./editor";
import { visible } from "./hidden_characters";
import { isKeyword, type Schema, type Suggestion, suggest } from "./sql";

// This module is loaded by the page on which one writes code.

// Matches replace the characters from start to end. Characters are counted as Python counts them.
export interface Matches {
  matches: { text: string; type: string }[];
  cursor_start: number;
  cursor_end: number;
}

export interface CodeProblem {
  kind: string;
  line: number;
  column?: number; // from 1
  message: string;
  hint?: string;
}

export interface EditorOptions {
  code: string;
  label: string;
  onChange: (code: string) => void;
  onRun: () => void;
  complete: (code: string, cursor: number) => Promise<Matches | undefined>; // undefined: not now
  check: (code: string) => Promise<CodeProblem[]>;
  schema: (database: string) => Promise<Schema | undefined>; // for SQL in strings; "" is the default database
}

export interface PythonEditor {
  code: () => string;
  setCode: (code: string) => void; // can be undone
  insert: (text: string) => void; // at the cursor
  insertLines: (text: string) => void; // below the line of the cursor
  mark: (marks: LineMark[]) => void; // until the code changes
  check: () => void;
  focus: () => void;
  remove: () => void;
}

const editing = EditorView.theme({
  ".cm-gutters": { backgroundColor: "transparent" }, // does not cover the focus ring
  ".cm-scroller": { minHeight: "190px", maxHeight: "min(60vh, 640px)" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 6%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-ground)", outline: "1px solid var(--accent)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-ground)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)",
    borderRadius: "4px",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxWidth: "min(480px, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.85", marginLeft: "12px" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-diagnostic": {
    padding: "4px 10px",
    whiteSpace: "pre-wrap",
    maxWidth: "min(560px, 90vw)",
    fontFamily: "system-ui, sans-serif",
  },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--warn)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--warn)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-active": { backgroundColor: "var(--warn-ground)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--accent-ground)", color: "var(--text)" },
});

// The types of the service, and those for which CodeMirror has a symbol.
const types: Record<string, string> = {
  instance: "variable",
  param: "variable",
  module: "namespace",
  key: "property",
  statement: "keyword",
};

// wantsCompletion reports whether to ask for completions: when a person asks, or has typed a name, a dot or the key of
// a dictionary, but not within comments and other strings.
function wantsCompletion(context: CompletionContext): boolean {
  if (context.explicit) return true;
  const { name } = syntaxTree(context.state).resolveInner(context.pos, -1);
  if (name === "Comment") return false;
  if (/String/.test(name)) return context.matchBefore(/\[["']\w*/) !== null;
  return context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*|\.|\[["']/u) !== null;
}

interface Statement {
  text: string;
  from: number; // in the document
  quote: string; // that a name in the statement needs
  database: string; // that the call names; "" is the default one
}

// statementAt returns the string at a position if it is an argument of db_query, db_frame or db_explain.
function statementAt(state: EditorState, at: number): Statement | undefined {
  let node: ReturnType<typeof syntaxTree>["topNode"] | null = syntaxTree(state).resolveInner(at, -1);
  while (node && !/String$|^FormatReplacement$/.test(node.name)) node = node.parent;
  if (!node || node.name === "FormatReplacement") return undefined; // Python in an f-string
  let call = node.parent;
  while (
    call &&
    (call.name === "ContinuedString" || call.name === "ArgList" || call.name === "ParenthesizedExpression")
  )
    call = call.parent;
  const called = call?.name === "CallExpression" ? state.sliceDoc(call.firstChild!.from, call.firstChild!.to) : "";
  if (!/^db_(query|frame|explain)$/.test(called)) return undefined;
  const whole = state.sliceDoc(node.from, node.to);
  const [opening, prefix = "", quotes = ""] = /^([a-z]*)("""|'''|"|')/i.exec(whole) ?? [];
  if (opening === undefined || at < node.from + opening.length) return undefined;
  const isClosed = whole.length >= opening.length + quotes.length && whole.endsWith(quotes);
  if (isClosed && at > node.to - quotes.length) return undefined;
  return {
    text: whole.slice(opening.length, isClosed ? -quotes.length : undefined),
    from: node.from + opening.length,
    quote: quotes.startsWith("'") ? '"' : /r/i.test(prefix) ? "" : '\\"',
    database:
      /\bdatabase\s*=\s*(["'])([a-z][a-z0-9_-]*)\1/.exec(
        state.sliceDoc(call!.from, node.from) + state.sliceDoc(node.to, call!.to),
      )?.[2] ?? "",
  };
}

const kinds: Record<Suggestion["kind"], string> = { table: "class", column: "property", alias: "variable" };

async function completeSQL(
  statement: Statement,
  context: CompletionContext,
  schema: EditorOptions["schema"],
): Promise<CompletionResult | null> {
  const at = context.pos - statement.from;
  const before = statement.text.slice(0, at);
  if (!context.explicit && !/[\p{L}\p{N}_."\s,(]$/u.test(before)) return null;
  const known = await schema(statement.database);
  if (!known || context.aborted) return null;
  const found = suggest(statement.text, at, known, context.explicit);
  if (!found || found.list.length === 0) return null;
  return {
    from: statement.from + found.from,
    options: found.list
      .filter(({ text }) => statement.quote || !text.includes('"'))
      .map(({ text, kind, detail, info }): Completion => {
        const label = text.replaceAll('"', statement.quote);
        return {
          label,
          displayLabel: visible(label),
          type: kinds[kind],
          detail: visible(detail),
          ...(info && { info: visible(info) }),
        };
      }),
    validFor: (text) => /^[\p{L}\p{N}_$]*$/u.test(text) && !isKeyword(text),
  };
}

function completionSource({ complete, schema }: EditorOptions) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const statement = statementAt(context.state, context.pos);
    if (statement) return completeSQL(statement, context, schema);
    if (!wantsCompletion(context)) return null;
    const code = context.state.doc.toString();
    const found = await complete(code, characters(code, context.pos));
    if (!found || context.aborted || found.matches.length === 0) return null;
    return {
      from: units(code, found.cursor_start),
      to: units(code, found.cursor_end),
      options: found.matches.map(
        ({ text, type }): Completion => ({ label: text, type: types[type] ?? type, detail: type }),
      ),
      validFor: /^[\p{L}\p{N}_]*$/u,
    };
  };
}

function diagnostic(doc: Text, problem: CodeProblem): Diagnostic {
  const line = doc.line(Math.min(Math.max(problem.line, 1), doc.lines));
  let from = line.from + (/\S/.exec(line.text)?.index ?? 0);
  if (problem.column) from = line.from + Math.min(units(line.text, problem.column - 1), line.length);
  const word = problem.column
    ? (/^[\p{L}\p{N}_]+|^./u.exec(line.text.slice(from - line.from))?.[0].length ?? 0)
    : line.to - from;
  const hint = problem.hint && !problem.message.includes(problem.hint) ? `\n${problem.hint}` : "";
  return {
    from,
    to: from + word,
    severity: problem.kind === "import" ? "warning" : "error",
    message: visible(problem.message + hint),
  };
}

const setFailureMarks = StateEffect.define<LineMark[]>();

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    if (transaction.docChanged) shown = Decoration.none;
    for (const effect of transaction.effects) {
      if (effect.is(setFailureMarks)) shown = decorations(transaction.state, effect.value);
    }
    return shown;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// checkAgain checks code that has not changed: something else has, on which the answer depends.
const checkAgain = StateEffect.define<null>();

// editPython makes an editor for Python in an element. It lives in a shadow tree, as that of showCode does.
//
// Tab indents. To leave with the keyboard, one presses Escape and then Tab.
export function editPython(parent: HTMLElement, options: EditorOptions): PythonEditor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const run = (view: EditorView) => {
    closeCompletion(view);
    options.onRun();
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.code,
      extensions: [
        lineNumbers(),
        lintGutter(),
        specialCharacters,
        highlightActiveLine(),
        history(),
        largeEdits,
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        pythonLanguage,
        syntaxHighlighting(highlighting),
        autocompletion({ override: [completionSource(options)], activateOnTypingDelay: 200, icons: false }),
        linter(
          async (shown) => {
            const { doc } = shown.state;
            return (await options.check(doc.toString())).map((problem) => diagnostic(doc, problem));
          },
          {
            delay: 500,
            needsRefresh: (update) =>
              update.transactions.some((change) => change.effects.some((effect) => effect.is(checkAgain))),
          },
        ),
        marked,
        editing, // before the theme, whose rules it replaces
        theme,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        EditorView.updateListener.of((update) => update.docChanged && options.onChange(update.state.doc.toString())),
        // The page uploads files that are dropped. CodeMirror would insert their text.
        Prec.highest(EditorView.domEventHandlers({ drop: (event) => (event.dataTransfer?.files.length ?? 0) > 0 })),
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run },
            { key: "Tab", run: acceptCompletion },
          ]),
        ),
        keymap.of([
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...lintKeymap,
          ...historyKeymap,
          ...defaultKeymap,
          indentWithTab,
        ]),
      ],
    }),
  });
  const replace = (from: number, to: number, text: string) => {
    view.dispatch({
      changes: { from, to, insert: text },
      selection: { anchor: from + text.length },
      scrollIntoView: false,
      userEvent: "input",
    });
    view.focus();
  };
  return {
    code: () => view.state.doc.toString(),
    setCode: (code) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: code }, selection: { anchor: 0 } }),
    insert: (text) => replace(view.state.selection.main.from, view.state.selection.main.to, text),
    insertLines: (text) => {
      const line = view.state.doc.lineAt(view.state.selection.main.head);
      if (line.text.trim() === "") replace(line.from, line.to, text);
      else replace(line.to, line.to, "\n" + text);
    },
    mark: (marks) => view.dispatch({ effects: setFailureMarks.of(marks) }),
    check: () => {
      view.dispatch({ effects: checkAgain.of(null) });
      forceLinting(view);
    },
    focus: () => view.focus(),
    remove: () => view.destroy(),
  };
}
