import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post } from "../api/client";
import { isAborted } from "../api/problem";
import type { PendingWrite, WriteSample } from "../api/records";
import { plural } from "../format";
import { alarmTexts } from "./writes_alarms";

interface Counted {
  rows: number | undefined; // undefined: not counted
  why: string; // it was not counted
}

// useCount counts the rows that a write would change, with a query that has the write's conditions.
function useCount(write: PendingWrite, isAsked: boolean): Counted | undefined {
  const [counted, setCounted] = useState<Counted>();
  useEffect(() => {
    if (!isAsked) return;
    let isGone = false;
    setCounted(undefined);
    post<WriteSample>(`/pending-writes/${encodeURIComponent(write.id)}/sample`).then(
      ({ affected_rows, count_error }) => {
        if (!isGone) setCounted({ rows: affected_rows ?? undefined, why: count_error ?? "" });
      },
      (thrown: unknown) => {
        if (!isGone && !isAborted(thrown)) setCounted({ rows: undefined, why: (thrown as Error).message });
      },
    );
    return () => {
      isGone = true;
    };
  }, [write.id, isAsked]);
  return counted;
}

// Apply is the button that applies a write. Its second step counts the rows first. A write with an alarm asks for the
// number of rows, so that nobody applies it with two quick clicks.
export function Apply(props: {
  of: PendingWrite;
  ask: string; // the name of the field for the reason
  maxLength: number;
  disabled: boolean;
  onAsk: (isAsking: boolean) => void;
  action: (reason: string) => Promise<void>;
}) {
  const { of: write, ask, maxLength, disabled, onAsk, action } = props;
  const [isAsking, setAsking] = useState(false);
  const [isRunning, setRunning] = useState(false);
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const counted = useCount(write, isAsking);
  const first = useRef<HTMLButtonElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const wasAsking = useRef(false);
  useLayoutEffect(() => {
    if (isAsking) field.current?.focus();
    else if (wasAsking.current) first.current?.focus();
    wasAsking.current = isAsking;
  }, [isAsking]);
  const show = (next: boolean) => {
    setAsking(next);
    setTyped("");
    onAsk(next);
  };
  if (!isAsking)
    return (
      <button
        ref={first}
        class={alarmTexts(write).length > 0 ? undefined : "primary"}
        disabled={disabled}
        onClick={() => show(true)}
      >
        Apply
      </button>
    );
  const alarms = alarmTexts(write, counted?.rows);
  const wanted = String(counted?.rows ?? write.row_estimate);
  const isReady = counted !== undefined && (alarms.length === 0 || typed.replace(/[,\s]/g, "") === wanted);
  const number =
    counted?.rows === undefined ? `about ${plural(write.row_estimate, "row")}` : plural(counted.rows, "row");
  const act = async () => {
    if (!isReady) return;
    setRunning(true);
    try {
      await action(reason);
    } finally {
      setRunning(false);
      show(false);
    }
  };
  const keys = {
    disabled: isRunning,
    onKeyDown: (event: KeyboardEvent) => event.key === "Enter" && void act(),
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys come from the controls in it
    <span class="two-steps" onKeyDown={(event) => event.key === "Escape" && show(false)}>
      <input
        ref={field}
        type="text"
        aria-label={ask}
        placeholder={ask}
        maxLength={maxLength}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
        {...keys}
      />
      {counted && alarms.length > 0 && (
        <input
          type="text"
          inputMode="numeric"
          aria-label={`Type ${wanted} to apply`}
          placeholder={`Type ${wanted} to apply`}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          {...keys}
        />
      )}
      <button
        class={alarms.length > 0 ? "danger solid" : "primary"}
        disabled={!isReady || isRunning}
        title={counted?.why ? `Not counted: ${counted.why}` : undefined}
        onClick={act}
      >
        {isRunning ? "Working…" : counted ? `Apply to ${number}` : "Counting the rows…"}
      </button>
      <button disabled={isRunning} onClick={() => show(false)}>
        Cancel
      </button>
    </span>
  );
}
