import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
import { EditorView, GutterMarker, gutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { highlighting, largeEdits, leave, markedLine, theme } from "./editor";

// This module is loaded with the page of the debugger: an editor with breakpoints next to the lines.

interface EditorBreakpoint {
  line: number;
  condition?: string;
  hitCondition?: string;
  logMessage?: string;
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

class BreakpointMarker extends GutterMarker {
  constructor(
    private readonly kind: string,
    private readonly label: string,
  ) {
    super();
  }

  override eq(other: BreakpointMarker): boolean {
    return this.kind === other.kind && this.label === other.label;
  }

  override toDOM(): Node {
    const dot = document.createElement("span");
    dot.className = `cm-breakpoint ${this.kind}`;
    dot.title = this.label;
    return dot;
  }
}

const setBreakpointMarkers = StateEffect.define<EditorBreakpoint[]>();

const breakpointMarkers = StateField.define<RangeSet<BreakpointMarker>>({
  create: () => RangeSet.empty,
  update(set, transaction) {
    set = set.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setBreakpointMarkers)) continue;
      const { doc } = transaction.state;
      const list = effect.value.filter((b) => b.line >= 1 && b.line <= doc.lines).sort((a, b) => a.line - b.line);
      set = RangeSet.of(
        list.map((b) => {
          const kind =
            b.verified === false ? "unverified" : b.condition || b.hitCondition || b.logMessage ? "conditional" : "";
          const label =
            (b.logMessage ? `Prints ${b.logMessage}` : "Breakpoint") +
            (b.condition ? ` if ${b.condition}` : "") +
            (b.hitCondition ? `, hits ${b.hitCondition}` : "");
          return new BreakpointMarker(kind, label).range(doc.line(b.line).from);
        }),
      );
    }
    return set;
  },
});

const current = markedLine("cm-current");

// showDebugEditor draws an editor into an element. See showCode for the shadow tree.
export function showDebugEditor(parent: HTMLElement, code: string, label: string, listener: Listener): DebugEditor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const access = new Compartment();
  const accessOf = (isEditable: boolean) => [
    EditorState.readOnly.of(!isEditable),
    EditorView.contentAttributes.of({
      "aria-label": label,
      "aria-readonly": String(!isEditable),
      "aria-multiline": "true",
      tabindex: "0",
    }),
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
          markers: (shown) => shown.state.field(breakpointMarkers),
          initialSpacer: () => new BreakpointMarker("", ""),
          domEventHandlers: { mousedown: (shown, line) => toggle(shown, line.from) },
        }),
        lineNumbers({ domEventHandlers: { mousedown: (shown, line) => toggle(shown, line.from) } }),
        breakpointMarkers,
        current.field,
        highlightSpecialChars(),
        EditorView.lineWrapping,
        pythonLanguage,
        syntaxHighlighting(highlighting),
        theme,
        access.of(accessOf(true)),
        EditorState.tabSize.of(4),
        keymap.of([{ key: "Escape", run: leave }, ...historyKeymap, ...defaultKeymap]),
        history(),
        indentUnit.of("    "),
        largeEdits,
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
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
  const show = (line: number) =>
    view.requestMeasure({
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
      if (text !== view.state.doc.toString())
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setEditable: (isEditable) => view.dispatch({ effects: access.reconfigure(accessOf(isEditable)) }),
    setBreakpoints: (list) => view.dispatch({ effects: setBreakpointMarkers.of(list) }),
    moveTo: (line) => {
      view.dispatch({ effects: current.set.of(line) });
      if (line >= 1) show(line);
    },
    remove: () => view.destroy(),
  };
}
