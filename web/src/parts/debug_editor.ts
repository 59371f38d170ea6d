import { pythonLanguage } from "@codemirror/lang-python";
import { syntaxHighlighting } from "@codemirror/language";
import { Annotation, type ChangeSet, Compartment, EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
import { EditorView, gutter, GutterMarker, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { highlighting, markedLine, theme } from "./editor";

// This module is loaded with the page of the debugger: an editor with breakpoints beside the lines.

export interface EditorBreakpoint {
  line: number;
  condition?: string;
  verified?: boolean; // undefined: no program runs
}

export interface DebugEditor {
  code: () => string;
  cursorLine: () => number | undefined; // undefined: the editor has no focus
  setCode: (code: string) => void;
  setEditable: (isEditable: boolean) => void;
  setBreakpoints: (list: EditorBreakpoint[]) => void;
  moveTo: (line: number) => void; // 0 is none
  remove: () => void;
}

interface Listener {
  onCode: (code: string) => void;
  onToggle: (line: number) => void;
  onMove: (lines: Map<number, number>) => void; // an edit moved lines: from the old numbers to the new ones
}

class Mark extends GutterMarker {
  constructor(private readonly kind: string, private readonly label: string) {
    super();
  }

  override eq(other: Mark): boolean {
    return this.kind === other.kind && this.label === other.label;
  }

  override toDOM(): Node {
    const dot = document.createElement("span");
    dot.className = `cm-breakpoint ${this.kind}`;
    dot.title = this.label;
    return dot;
  }
}

const setMarks = StateEffect.define<EditorBreakpoint[]>();

const marks = StateField.define<RangeSet<Mark>>({
  create: () => RangeSet.empty,
  update(set, transaction) {
    set = set.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setMarks)) continue;
      const { doc } = transaction.state;
      const list = effect.value.filter((b) => b.line >= 1 && b.line <= doc.lines).sort((a, b) => a.line - b.line);
      set = RangeSet.of(list.map((b) => {
        const kind = b.verified === false ? "unverified" : b.condition ? "conditional" : "";
        const label = b.condition ? `Breakpoint if ${b.condition}` : "Breakpoint";
        return new Mark(kind, label).range(doc.line(b.line).from);
      }));
    }
    return set;
  },
});

// The history of edits: each entry undoes the edits of about a second. Undoing an entry gives the entry that redoes it.
const isHistory = Annotation.define<boolean>();
const mergeTime = 800; // milliseconds

class Edits {
  private undone: ChangeSet[] = [];
  private done: ChangeSet[] = [];
  private at = 0;

  add(inverse: ChangeSet): void {
    const last = this.done.at(-1);
    if (last && performance.now() - this.at < mergeTime) this.done[this.done.length - 1] = inverse.compose(last);
    else this.done.push(inverse);
    if (this.done.length > 500) this.done.shift();
    this.undone = [];
    this.at = performance.now();
  }

  move(view: EditorView, isUndo: boolean): boolean {
    const [from, to] = isUndo ? [this.done, this.undone] : [this.undone, this.done];
    const change = from.pop();
    if (change && !view.state.readOnly) {
      to.push(change.invert(view.state.doc));
      view.dispatch({ changes: change, annotations: isHistory.of(true), scrollIntoView: true });
    }
    this.at = 0;
    return true;
  }
}

// newLine keeps the indentation, and adds to it behind a colon.
function newLine(view: EditorView): boolean {
  if (view.state.readOnly) return false;
  const { from, to } = view.state.selection.main;
  const line = view.state.doc.lineAt(from);
  const before = line.text.slice(0, from - line.from);
  const indent = /^\s*/.exec(before)![0] + (/:\s*(#.*)?$/.test(before) ? "    " : "");
  view.dispatch({ changes: { from, to, insert: "\n" + indent }, selection: { anchor: from + 1 + indent.length }, scrollIntoView: true });
  return true;
}

// replace does edits over several lines. Chromium would do them with style attributes, which the policy forbids.
function replace(event: InputEvent, view: EditorView): boolean {
  if (view.state.readOnly || event.isComposing) return false;
  const { from, to, empty } = view.state.selection.main;
  const line = view.state.doc.lineAt(from);
  let change: { from: number; to: number; insert: string } | undefined;
  if (!empty && event.inputType === "insertText") change = { from, to, insert: event.data ?? "" };
  else if (!empty && event.inputType.startsWith("delete")) change = { from, to, insert: "" };
  else if (event.inputType === "deleteContentBackward" && from === line.from && from > 0) change = { from: from - 1, to, insert: "" };
  else if (event.inputType === "deleteContentForward" && to === line.to && to < view.state.doc.length) change = { from, to: to + 1, insert: "" };
  if (!change) return false;
  event.preventDefault();
  view.dispatch({ changes: change, selection: { anchor: change.from + change.insert.length }, scrollIntoView: true });
  return true;
}

const current = markedLine("cm-current");

// showDebugEditor draws an editor into an element. See showCode for the shadow tree.
export function showDebugEditor(parent: HTMLElement, code: string, label: string, listener: Listener): DebugEditor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const access = new Compartment();
  const edits = new Edits();
  const accessOf = (isEditable: boolean) => [
    EditorState.readOnly.of(!isEditable),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": String(!isEditable), "aria-multiline": "true", tabindex: "0" }),
  ];
  const toggle = (view: EditorView, from: number) => {
    listener.onToggle(view.state.doc.lineAt(from).number);
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: code,
      extensions: [
        gutter({
          class: "cm-breakpoints",
          markers: (shown) => shown.state.field(marks),
          initialSpacer: () => new Mark("", ""),
          domEventHandlers: { mousedown: (shown, line) => toggle(shown, line.from) },
        }),
        lineNumbers({ domEventHandlers: { mousedown: (shown, line) => toggle(shown, line.from) } }),
        marks,
        current.field,
        highlightSpecialChars(),
        pythonLanguage,
        syntaxHighlighting(highlighting),
        theme,
        access.of(accessOf(true)),
        EditorState.tabSize.of(4),
        keymap.of([
          { key: "Enter", run: newLine },
          { key: "Mod-z", run: (shown) => edits.move(shown, true), preventDefault: true },
          { key: "Mod-y", mac: "Mod-Shift-z", run: (shown) => edits.move(shown, false), preventDefault: true },
          { key: "Escape", run: (shown) => (shown.contentDOM.blur(), true) },
        ]),
        EditorView.domEventHandlers({ beforeinput: replace }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          for (const transaction of update.transactions) {
            if (transaction.docChanged && !transaction.annotation(isHistory)) {
              edits.add(transaction.changes.invert(transaction.startState.doc));
            }
          }
          const lines = new Map<number, number>();
          for (let n = 1; n <= update.startState.doc.lines; n++) {
            const at = update.changes.mapPos(update.startState.doc.line(n).from, 1);
            lines.set(n, update.state.doc.lineAt(Math.min(at, update.state.doc.length)).number);
          }
          listener.onMove(lines);
          listener.onCode(update.state.doc.toString());
        }),
      ],
    }),
  });
  const show = (line: number) => view.requestMeasure({
    read: () => view.lineBlockAt(view.state.doc.line(Math.min(line, view.state.doc.lines)).from),
    write: ({ top, bottom }) => {
      const box = view.scrollDOM;
      if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - 200;
    },
  });
  return {
    code: () => view.state.doc.toString(),
    cursorLine: () => (root.activeElement ? view.state.doc.lineAt(view.state.selection.main.head).number : undefined),
    setCode: (text) => {
      if (text !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setEditable: (isEditable) => view.dispatch({ effects: access.reconfigure(accessOf(isEditable)) }),
    setBreakpoints: (list) => view.dispatch({ effects: setMarks.of(list) }),
    moveTo: (line) => {
      view.dispatch({ effects: current.set.of(line) });
      if (line >= 1) show(line);
    },
    remove: () => view.destroy(),
  };
}
