import { pythonLanguage } from "@codemirror/lang-python";
import { HighlightStyle, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { EditorState, type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { hasHint, plural } from "../format";
import type { LineMark } from "./code";
import { shownCharacters, visible } from "./hidden_characters";

// This module is loaded when code is shown: CodeMirror is four times as large as everything else.

export const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  {
    tag: [
      tags.function(tags.variableName),
      tags.function(tags.definition(tags.variableName)),
      tags.definition(tags.className),
    ],
    color: "var(--code-name)",
  },
]);

export const theme = EditorView.theme({
  "&": { backgroundColor: "var(--ground)", color: "var(--text)", fontSize: "12px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", maxHeight: "640px" },
  ".cm-content": { padding: "8px 0" },
  // A page says where lines stay whole, and scroll.
  ".cm-content.cm-lineWrapping": { whiteSpace: "var(--code-space, break-spaces)", flexShrink: "var(--code-shrink, 1)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--muted)", border: "none", padding: "0 6px" },
  ".cm-line": { padding: "0 12px" },
  ".cm-current": { backgroundColor: "var(--accent-ground)", boxShadow: "inset 3px 0 var(--accent)" },
  ".cm-value": { color: "var(--muted)", fontStyle: "italic", marginLeft: "24px", cursor: "default" },
  "&.cm-asking .cm-name": { cursor: "pointer" },
  "&.cm-asking .cm-name:hover": { textDecoration: "underline", textUnderlineOffset: "3px" },
  ".cm-picked": { boxShadow: "inset 3px 0 var(--warn)" },
  "&.cm-choosable .cm-lineNumbers": { cursor: "pointer" },
  "&.cm-choosable .cm-gutterElement:hover": { color: "var(--accent)" },
  ".cm-breakpoints": { width: "20px", cursor: "pointer" },
  ".cm-breakpoints .cm-gutterElement": { display: "flex", alignItems: "center", justifyContent: "center" },
  ".cm-breakpoint": { width: "10px", height: "10px", borderRadius: "50%", backgroundColor: "var(--bad)" },
  ".cm-breakpoint.conditional": { borderRadius: "2px" },
  ".cm-breakpoint.unverified": { backgroundColor: "transparent", border: "2px solid var(--muted)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-called": { backgroundColor: "var(--warn-ground)" },
  ".cm-failed": { backgroundColor: "var(--bad-ground)", boxShadow: "inset 3px 0 var(--bad)" },
  ".cm-failure": {
    backgroundColor: "var(--bad-ground)",
    boxShadow: "inset 3px 0 var(--bad)",
    padding: "2px 12px 8px 16px",
    fontFamily: "system-ui, sans-serif",
    whiteSpace: "normal",
    overflowWrap: "anywhere",
  },
  ".cm-failure strong": { display: "block", color: "var(--bad)", maxHeight: "7.5em", overflow: "auto" },
  ".cm-failure dl": {
    display: "grid",
    gridTemplateColumns: "max-content minmax(0, 1fr)",
    gap: "1px 12px",
    margin: "4px 0 0",
    fontFamily: "var(--mono)",
  },
  ".cm-failure dt": { color: "var(--muted)" },
  ".cm-failure dd": { margin: "0", maxHeight: "4.8em", overflow: "auto" },
  ".cm-failure summary": { cursor: "pointer", color: "var(--muted)", marginTop: "4px" },
});

export const specialCharacters = highlightSpecialChars({ addSpecialChars: shownCharacters });

// Failure is shown below the line at which the program failed.
class Failure extends WidgetType {
  constructor(private readonly mark: LineMark) {
    super();
  }

  override eq(other: Failure): boolean {
    return other.mark === this.mark;
  }

  override toDOM(view: EditorView): HTMLElement {
    const box = element("div", "cm-failure");
    if (this.mark.message) box.append(element("strong", "", this.mark.message));
    if (this.mark.hint && !hasHint(this.mark.message ?? "", this.mark.hint))
      box.append(element("div", "", this.mark.hint));
    const variables = Object.entries(this.mark.variables ?? {});
    // The variables that the line names say most.
    const isNamed = ([name]: [string, string]) =>
      new RegExp(`\\b${escapePattern(name)}\\b`, "u").test(this.mark.code ?? "");
    const named = variables.filter(isNamed);
    const others = variables.filter((variable) => !isNamed(variable));
    if (named.length > 0) box.append(list(named));
    if (others.length > 0) {
      const details = document.createElement("details");
      details.append(
        element("summary", "", plural(others.length, named.length > 0 ? "other variable" : "variable")),
        list(others),
      );
      details.addEventListener("toggle", () => view.requestMeasure());
      box.append(details);
    }
    return box;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

// leave moves the focus out of an editor, in which Tab may have another use.
export function leave(view: EditorView): boolean {
  view.contentDOM.blur();
  return true;
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function element(name: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = visible(text);
  return made;
}

function list(variables: [string, string][]): HTMLElement {
  const made = element("dl", "");
  for (const [name, value] of variables) made.append(element("dt", "", name), element("dd", "", value));
  return made;
}

export function decorations(state: EditorState, marks: LineMark[]): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const lines = marks.filter((mark) => mark.line >= 1 && mark.line <= state.doc.lines).sort((a, b) => a.line - b.line);
  for (const mark of lines) {
    const line = state.doc.line(mark.line);
    builder.add(line.from, line.from, Decoration.line({ class: mark.isFailure ? "cm-failed" : "cm-called" }));
    if (mark.isFailure)
      builder.add(line.to, line.to, Decoration.widget({ widget: new Failure(mark), block: true, side: 1 }));
  }
  return builder.finish();
}

// markedLine returns a field that gives one line a class, and the effect that sets the line; 0 is none.
export function markedLine(className: string) {
  const set = StateEffect.define<number>();
  const field = StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(marked, transaction) {
      for (const effect of transaction.effects) {
        if (!effect.is(set)) continue;
        const { doc } = transaction.state;
        if (effect.value < 1 || effect.value > doc.lines) return Decoration.none;
        return Decoration.set(Decoration.line({ class: className }).range(doc.line(effect.value).from));
      }
      return marked;
    },
    provide: (from) => EditorView.decorations.from(from),
  });
  return { set, field };
}

const current = markedLine("cm-current"); // at which a recorded program stands
const picked = markedLine("cm-picked"); // that a person chose by its number

// Value is shown behind a line.
class Value extends WidgetType {
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: Value): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    return element("span", "cm-value", this.text);
  }
}

const setShownValues = StateEffect.define<Map<number, string>>();

const shownValues = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setShownValues)) continue;
      const { doc } = transaction.state;
      const lines = [...effect.value].filter(([line]) => line >= 1 && line <= doc.lines).sort(([a], [b]) => a - b);
      return Decoration.set(
        lines.map(([line, text]) => Decoration.widget({ widget: new Value(text), side: 1 }).range(doc.line(line).to)),
      );
    }
    return shown;
  },
  provide: (from) => EditorView.decorations.from(from),
});

// nameAt returns the name of a variable at a place of the code, or "".
function nameAt(state: EditorState, at: number): string {
  for (const side of [1, -1] as const) {
    const node = syntaxTree(state).resolveInner(at, side);
    if (node.name === "VariableName") return state.sliceDoc(node.from, node.to);
  }
  return "";
}

// askNames makes the names of variables in code choosable.
function askNames(state: EditorState, onName: (name: string, line: number) => void): Extension {
  const builder = new RangeSetBuilder<Decoration>();
  syntaxTree(state).iterate({
    enter: (node) => {
      if (node.name === "VariableName") builder.add(node.from, node.to, Decoration.mark({ class: "cm-name" }));
    },
  });
  return [
    EditorView.editorAttributes.of({ class: "cm-asking" }),
    EditorView.decorations.of(builder.finish()),
    EditorView.domEventHandlers({
      click: (event, view) => {
        if (!(event.target as Element).closest?.(".cm-name") || !view.state.selection.main.empty) return false;
        const at = view.posAtCoords(event);
        const name = at === null ? "" : nameAt(view.state, at);
        if (!name) return false;
        onName(name, view.state.doc.lineAt(at!).number);
        return true;
      },
    }),
  ];
}

export interface ShownCode {
  moveTo: (line: number) => void; // marks the current line and shows it
  setValues: (values: Map<number, string>) => void; // shows them behind their lines
  pick: (line: number) => void; // marks the line that a person chose
  remove: () => void;
}

interface CodeActions {
  onLine?: ((line: number) => void) | undefined; // the number of a line was clicked
  onName?: ((name: string, line: number) => void) | undefined; // the name of a variable was clicked
}

// showCode draws code that cannot be edited into an element, and returns what moves in it and removes it.
//
// The editor lives in a shadow tree: there, CodeMirror uses style sheets that are objects. In the document it would
// add style elements, which the policy of these pages forbids.
export function showCode(
  parent: HTMLElement,
  code: string,
  marks: LineMark[],
  label: string,
  { onLine, onName }: CodeActions,
): ShownCode {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  code = code.replace(/\n$/, ""); // not a line of its own
  let state = EditorState.create({ doc: code, extensions: [pythonLanguage] });
  const marked = decorations(state, marks);
  state = EditorState.create({
    doc: code,
    extensions: [
      lineNumbers(
        onLine && {
          domEventHandlers: {
            click: (view, block) => {
              onLine(view.state.doc.lineAt(block.from).number);
              return true;
            },
          },
        },
      ),
      onLine ? EditorView.editorAttributes.of({ class: "cm-choosable" }) : [],
      specialCharacters,
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
      EditorView.decorations.of(marked),
      picked.field,
      current.field,
      shownValues,
      onName ? askNames(state, onName) : [],
      EditorView.lineWrapping,
      pythonLanguage,
      syntaxHighlighting(highlighting),
      theme,
      keymap.of([{ key: "Escape", run: leave }]),
    ],
  });
  const view = new EditorView({ state, root, parent: root });
  // show scrolls the code, but not the page as EditorView.scrollIntoView would do.
  const show = (line: number, always: boolean) =>
    view.requestMeasure({
      read: () => view.lineBlockAt(view.state.doc.line(line).from),
      write: ({ top, bottom }) => {
        const box = view.scrollDOM;
        if (always || top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - 200;
      },
    });
  const failed = marks.find((mark) => mark.isFailure && mark.line >= 1 && mark.line <= view.state.doc.lines);
  if (failed) show(failed.line, true);
  return {
    moveTo: (line) => {
      view.dispatch({ effects: current.set.of(line) });
      if (line >= 1 && line <= view.state.doc.lines) show(line, false);
    },
    setValues: (values) => view.dispatch({ effects: setShownValues.of(values) }),
    pick: (line) => view.dispatch({ effects: picked.set.of(line) }),
    remove: () => view.destroy(),
  };
}

// largeEdits does edits over several lines. Chromium would do them with style attributes, which the policy forbids.
export const largeEdits = EditorView.domEventHandlers({ beforeinput: replace });

function replace(event: InputEvent, view: EditorView): boolean {
  if (view.state.readOnly || event.isComposing) return false;
  const { from, to, empty } = view.state.selection.main;
  const line = view.state.doc.lineAt(from);
  let change: { from: number; to: number; insert: string } | undefined;
  if (!empty && event.inputType === "insertText") change = { from, to, insert: event.data ?? "" };
  else if (!empty && event.inputType.startsWith("delete")) change = { from, to, insert: "" };
  else if (event.inputType === "deleteContentBackward" && from === line.from && from > 0)
    change = { from: from - 1, to, insert: "" };
  else if (event.inputType === "deleteContentForward" && to === line.to && to < view.state.doc.length)
    change = { from, to: to + 1, insert: "" };
  if (!change) return false;
  event.preventDefault();
  const { insert } = change;
  const edit = () =>
    view.state.update({
      changes: change,
      selection: { anchor: change.from + insert.length },
      scrollIntoView: true,
      userEvent: insert ? "input.type" : "delete",
    });
  // Brackets go around the selection.
  if (insert && view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, insert, edit)))
    return true;
  view.dispatch(edit());
  return true;
}
