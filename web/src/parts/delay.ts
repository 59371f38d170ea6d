import { useEffect, useState } from "preact/hooks";

// useDelay reports whether a condition has held for a time in milliseconds.
export function useDelay(holds: boolean, delay: number): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!holds) return;
    const timer = window.setTimeout(() => setOver(true), delay);
    return () => {
      window.clearTimeout(timer);
      setOver(false);
    };
  }, [holds, delay]);
  return holds && isOver;
}
