import { send } from "../api/client";

interface Gap {
  first: number;
  last: number;
  reason: string;
}

interface Segment {
  first: number; // step
  position: number; // of the first step among all recorded steps, from 0
  count: number;
}

// StepLines knows the line of each recorded step, so that the current line follows the pointer without a request.
// Recorded steps have positions from 0 on; steps that were not recorded have none. The last position is the end of the
// run, after the last line: the step total + 1, which has no line of its own.
export class StepLines {
  readonly count: number;
  readonly gaps: Gap[];
  private readonly segments: Segment[] = [];
  private readonly lines: Uint32Array;
  private readonly depths: Uint16Array; // the number of frames of each step
  private readonly runs = new Map<number, Uint32Array>(); // by line

  private constructor(
    readonly total: number,
    gaps: Gap[],
    lines: Uint32Array,
    depths: Uint16Array,
  ) {
    this.gaps = gaps;
    this.lines = lines;
    this.depths = depths;
    let first = 1;
    let position = 0;
    for (const gap of [...gaps, { first: total + 2, last: total + 1 }]) {
      const count = gap.first - first;
      if (count > 0) this.segments.push({ first, position, count });
      position += Math.max(0, count);
      first = gap.last + 1;
    }
    this.count = position;
  }

  // without returns what is known before the lines are loaded: the number of steps.
  static without(total: number): StepLines {
    return new StepLines(total, [], new Uint32Array(), new Uint16Array());
  }

  static async load(path: string, signal: AbortSignal): Promise<StepLines> {
    const response = await send("GET", `${path}/line-map`, { accept: "application/octet-stream", signal });
    const body = await response.arrayBuffer();
    const length = new DataView(body).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, length))) as {
      total_steps: number;
      count: number;
      gaps: Gap[];
    };
    const start = 4 + length;
    const lines = new Uint32Array(body, start, head.count);
    return new StepLines(head.total_steps, head.gaps, lines, new Uint16Array(body, start + 4 * head.count, head.count));
  }

  // stepAt returns the step at a position, or at the nearest one.
  stepAt(position: number): number {
    const wanted = Math.max(0, Math.min(this.count - 1, position));
    const segment = this.segments.findLast((s) => s.position <= wanted);
    return segment ? segment.first + wanted - segment.position : 1;
  }

  // positionOf returns the position of a step, or of the last recorded step before it.
  positionOf(step: number): number {
    const segment = this.segments.findLast((s) => s.first <= step);
    return segment ? segment.position + Math.min(segment.count - 1, step - segment.first) : 0;
  }

  // lineOf returns the line of a step: 0 in another file than the program's, undefined if it is not known.
  lineOf(step: number): number | undefined {
    return this.lines[this.positionOf(step)];
  }

  // after returns the position at which the line of a position has run, with the calls that it made: the next position in
  // the same function or in a caller, or the end.
  after(position: number): number {
    const depth = this.depths[position] ?? 0;
    let next = position + 1;
    while (next < this.count - 1 && this.depths[next]! > depth) next++;
    return Math.min(next, this.count - 1);
  }

  // runsOf returns the positions of the steps at a line, in order.
  runsOf(line: number): Uint32Array {
    const known = this.runs.get(line);
    if (known) return known;
    let count = 0;
    for (const each of this.lines) if (each === line) count++;
    const out = new Uint32Array(count);
    let next = 0;
    for (let i = 0; next < count; i++) if (this.lines[i] === line) out[next++] = i;
    this.runs.set(line, out);
    return out;
  }
}

// firstAtLeast returns the index of the first number in a sorted list that is not smaller than a limit.
export function firstAtLeast(list: Uint32Array, limit: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

// runBeside returns the position of the next run of a line after a position, or of the one before it.
export function runBeside(lineRuns: Uint32Array, position: number, direction: 1 | -1): number | undefined {
  return lineRuns[direction > 0 ? firstAtLeast(lineRuns, position + 1) : firstAtLeast(lineRuns, position) - 1];
}

// buckets returns how many of the positions are in each of a number of equal parts of all positions.
export function buckets(positions: Uint32Array, count: number, bucketCount: number): Uint32Array {
  const out = new Uint32Array(bucketCount);
  for (const position of positions) out[Math.min(bucketCount - 1, Math.floor((position * bucketCount) / count))]!++;
  return out;
}
