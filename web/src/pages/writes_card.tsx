import { useState } from "preact/hooks";
import { post } from "../api/client";
import { Problem } from "../api/problem";
import type { PendingWrite } from "../api/records";
import { asText, fullTime, plural, statementText } from "../format";
import { Failure, TwoSteps } from "../parts/feedback";
import { Ago, ExecutionLink, Status } from "../parts/label";
import { alarmTexts } from "./writes_alarms";
import { Apply } from "./writes_apply";
import { Plan } from "./writes_plan";
import { Preview, Sample, Undo } from "./writes_rows";

const reasonLabel = "Reason (optional)";
const maxReason = 1000; // characters

type Decide = (what: "apply" | "reject" | "resolve", body?: object) => (reason: string) => Promise<void>;

// Write is a statement with what an admin needs to decide about it.
export function Write({ of: write, changed }: { of: PendingWrite; changed: (next: PendingWrite) => void }) {
  const [problem, setProblem] = useState<Problem>();
  const decide: Decide =
    (what, body = {}) =>
    async (reason) => {
      setProblem(undefined);
      try {
        const path = `/pending-writes/${encodeURIComponent(write.id)}/${what}`;
        changed(await post<PendingWrite>(path, reason.trim() ? { ...body, reason } : body));
      } catch (thrown) {
        setProblem(Problem.from(thrown));
      }
    };
  const alarms = alarmTexts(write);
  return (
    <section
      class={alarms.length > 0 && write.status === "pending" ? "panel write danger" : "panel write"}
      aria-label={`Write of ${write.user_id}, ${fullTime(write.created_at)}`}
    >
      <header>
        <h2>
          <Status of={write.status} />
          <span class="muted">
            {write.user_id}, <Ago at={write.created_at} />,{write.database && ` database ${write.database},`} execution{" "}
            <ExecutionLink id={write.execution_id} />
          </span>
        </h2>
        <Decisions of={write} decide={decide} />
      </header>
      {problem && <Failure problem={problem} />}
      <div class="body">
        {alarms.map((text) => (
          <p key={text} class="alarm">
            <strong>{text}</strong>
          </p>
        ))}
        <pre class="statement">{statementText(write.query)}</pre>
        <Parameters of={write} />
        <Outcome of={write} />
        {write.status === "pending" && <Sample of={write} />}
        {write.status === "pending" && <Preview of={write} />}
        {write.has_undo && <Undo of={write} />}
        {write.plan !== null && write.plan !== undefined && (
          <details>
            <summary>Plan</summary>
            <Plan of={write.plan} />
          </details>
        )}
      </div>
    </section>
  );
}

function Parameters({ of: write }: { of: PendingWrite }) {
  const parameters = Object.entries(write.parameters ?? {});
  if (parameters.length === 0) return null;
  return (
    <dl>
      {parameters.map(([name, value]) => (
        <>
          <dt key={name} class="mono">
            :{name}
            {write.types?.[name] && ` ${write.types[name]}`}
          </dt>
          <dd class="mono">{asText(value)}</dd>
        </>
      ))}
    </dl>
  );
}

// Outcome says what PostgreSQL expects, or what it did, and who decided.
function Outcome({ of: write }: { of: PendingWrite }) {
  const isApplied = write.status === "applied" && !write.error;
  const differs = isApplied && write.affected_rows !== write.row_estimate;
  return (
    <>
      <p class="muted">
        {isApplied
          ? `It changed ${plural(write.affected_rows, "row")}.`
          : `PostgreSQL expects to change about ${plural(write.row_estimate, "row")}.`}
        {differs && ` PostgreSQL had expected about ${plural(write.row_estimate, "row")}.`}
        {write.decided_by && (
          <>
            {" "}
            Decided by {write.decided_by}
            {write.decided_at && (
              <>
                , <Ago at={write.decided_at} />
              </>
            )}
            .
          </>
        )}
      </p>
      {write.reason && (
        <p class="reason">
          <span class="muted">Reason:</span> {write.reason}
        </p>
      )}
      {write.error && <p class="why">{write.error}</p>}
    </>
  );
}

// Decisions has the buttons of a write that waits. While one asks for its second step, the other cannot be chosen.
function Decisions({ of: write, decide }: { of: PendingWrite; decide: Decide }) {
  const [asking, setAsking] = useState("");
  const step = (name: string, others: string) => ({
    ask: reasonLabel,
    maxLength: maxReason,
    disabled: asking === others,
    onAsk: (isAsking: boolean) => setAsking(isAsking ? name : ""),
  });
  if (write.status === "unknown")
    return (
      <div class="actions">
        <TwoSteps
          label="It was not applied"
          confirm="Not applied: it waits again"
          {...step("not applied", "applied")}
          action={decide("resolve", { applied: false })}
        />
        <TwoSteps
          label="It was applied"
          confirm="Applied: it never runs again"
          {...step("applied", "not applied")}
          action={decide("resolve", { applied: true })}
        />
      </div>
    );
  if (write.status !== "pending") return null;
  return (
    <div class="actions">
      <TwoSteps
        label="Reject"
        confirm="Reject: it never runs"
        danger
        {...step("reject", "apply")}
        action={decide("reject")}
      />
      <Apply of={write} {...step("apply", "reject")} action={decide("apply")} />
    </div>
  );
}
