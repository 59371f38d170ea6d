import { useLayoutEffect } from "preact/hooks";
import { runBeside } from "./steps_lines";
import type { Recording } from "./steps_recording";

// useStepKeys moves through the steps of a recording with keys. picked is the line whose runs n and p visit; h picks the
// current line.
export function useStepKeys(recording: Recording, picked: number, pick: (line: number) => void): void {
  useLayoutEffect(() => {
    const move = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.defaultPrevented || target.matches("input:not([type=range]), select, textarea")) return;
      const { lines, go } = recording;
      const by = event.shiftKey ? 10 : 1;
      const goPosition = (to: number | undefined) => to !== undefined && go(lines.stepAt(to));
      const position = lines.positionOf(recording.latestStep());
      const line = lines.lineOf(recording.step);
      const commands: Record<string, () => void> = {
        ArrowLeft: () => goPosition(position - by),
        ArrowRight: () => goPosition(position + by),
        Home: () => goPosition(0),
        End: () => goPosition(lines.count - 1),
        h: () => line && pick(line),
        n: () => goPosition(runBeside(lines.runsOf(picked), position, 1)),
        p: () => goPosition(runBeside(lines.runsOf(picked), position, -1)),
      };
      const command = commands[event.key];
      if (!command) return;
      event.preventDefault();
      command();
    };
    document.addEventListener("keydown", move);
    return () => document.removeEventListener("keydown", move);
  });
}
