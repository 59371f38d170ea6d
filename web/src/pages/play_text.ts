// maxShownChars is the maximum number of characters of one stream that the page keeps and shows.
const maxShownChars = 64_000;

const control = /(\r|\n|\x08|\x1b\[[0-9;?]*[A-Za-z])/;
const incomplete = /\x1b(\[[0-9;?]*)?$/;

// TextTail is the end of a stream of text, with carriage returns and backspaces as a terminal shows them. Colours and
// other escape sequences are left out. However much arrives, it holds a bounded part.
export class TextTail {
  left = 0; // characters at the beginning that are no longer held
  private lines = ""; // complete lines
  private line = "";
  private column = 0;
  private rest = ""; // the beginning of an escape sequence

  static of(text: string): TextTail {
    const tail = new TextTail();
    tail.push(text);
    return tail;
  }

  get text(): string {
    return this.lines + this.line;
  }

  push(text: string): void {
    text = this.rest + text;
    this.rest = incomplete.exec(text)?.[0] ?? "";
    if (this.rest) text = text.slice(0, -this.rest.length);
    if (text.length > 4 * maxShownChars) {
      const kept = text.length - 2 * maxShownChars;
      this.left += this.text.length + kept;
      this.lines = this.line = "";
      this.column = 0;
      text = text.slice(kept);
    }
    for (const part of text.split(control)) {
      if (part === "") continue;
      if (part === "\n") {
        this.lines += this.line + "\n";
        this.line = "";
        this.column = 0;
      } else if (part === "\r") this.column = 0;
      else if (part === "\x08") this.column = Math.max(0, this.column - 1);
      else if (part.startsWith("\x1b[")) {
        if (part.endsWith("K")) this.line = this.line.slice(0, this.column);
      } else {
        this.line = this.line.slice(0, this.column) + part + this.line.slice(this.column + part.length);
        this.column += part.length;
      }
      if (this.lines.length + this.line.length > 2 * maxShownChars) this.cut();
    }
    this.cut();
  }

  private cut(): void {
    const over = this.lines.length + this.line.length - maxShownChars;
    if (over <= 0) return;
    this.left += over;
    const ofLines = Math.min(over, this.lines.length);
    this.lines = this.lines.slice(ofLines);
    this.line = this.line.slice(over - ofLines);
    this.column = Math.max(0, this.column - (over - ofLines));
  }
}
