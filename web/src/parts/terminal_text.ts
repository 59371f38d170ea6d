// maxShownChars is the maximum number of characters of one stream that TextTail keeps.
const maxShownChars = 64_000;

const control = /(\r|\n|\x08|\x1b\[[0-9;?]*[A-Za-z])/;
const incomplete = /\x1b(\[[0-9;?]*)?$/;

// Screen is lines of text, with carriage returns and backspaces as a terminal shows them. Colours and other escape
// sequences are left out. It takes time in proportion to the text, whatever the text is.
class Screen {
  lines = ""; // complete lines
  line: string[] = []; // the characters of the last one
  private column = 0;

  get length(): number {
    return this.lines.length + this.line.length;
  }

  get text(): string {
    return this.lines + this.line.join("");
  }

  write(text: string, onPart = () => {}): void {
    for (const part of text.split(control)) {
      if (part === "") continue;
      if (part === "\n") {
        this.lines += this.line.join("") + "\n";
        this.line = [];
        this.column = 0;
      } else if (part === "\r") this.column = 0;
      else if (part === "\x08") this.column = Math.max(0, this.column - 1);
      else if (part.startsWith("\x1b[")) {
        if (part.endsWith("K")) this.line.length = Math.min(this.line.length, this.column);
      } else {
        for (const character of part) this.line[this.column++] = character;
      }
      onPart();
    }
  }

  // cut removes characters at the beginning.
  cut(over: number): void {
    const ofLines = Math.min(over, this.lines.length);
    this.lines = this.lines.slice(ofLines);
    this.line = this.line.slice(over - ofLines);
    this.column = Math.max(0, this.column - (over - ofLines));
  }
}

// terminalText returns what a terminal shows of a text.
export function terminalText(text: string): string {
  if (!/[\r\x08\x1b]/.test(text)) return text;
  const screen = new Screen();
  screen.write(text.replace(incomplete, ""));
  return screen.text;
}

// TextTail is the end of a stream of text, as a terminal shows it. However much arrives, it holds a bounded part.
export class TextTail {
  left = 0; // characters at the beginning that are no longer held
  private screen = new Screen();
  private rest = ""; // the beginning of an escape sequence

  static of(text: string): TextTail {
    const tail = new TextTail();
    tail.push(text);
    return tail;
  }

  get text(): string {
    return this.screen.text;
  }

  push(text: string): void {
    text = this.rest + text;
    this.rest = incomplete.exec(text)?.[0] ?? "";
    if (this.rest) text = text.slice(0, -this.rest.length);
    if (text.length > 4 * maxShownChars) {
      const kept = text.length - 2 * maxShownChars;
      this.left += this.screen.length + kept;
      this.screen = new Screen();
      text = text.slice(kept);
    }
    this.screen.write(text, () => {
      if (this.screen.length > 2 * maxShownChars) this.cut();
    });
    this.cut();
  }

  private cut(): void {
    const over = this.screen.length - maxShownChars;
    if (over <= 0) return;
    this.left += over;
    this.screen.cut(over);
  }
}
