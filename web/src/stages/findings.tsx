import type { Finding, Stages } from "./answer";
import { plainText } from "./words";

const certain = 90;
const likely = 70;

// Findings lists what may be wrong with a statement, each with its line.
export function Findings({ of: answer, show }: { of: Stages; show: (finding: Finding) => void }) {
  const first = answer.findings.filter(({ score }) => score >= certain);
  const check = answer.findings.filter(({ score }) => score >= likely && score < certain);
  const possible = answer.findings.filter(({ score }) => score < likely);
  return (
    <section class="findings" aria-label="Findings">
      <List title="Check first" look="first" of={first} show={show} />
      <List title="Check if intended" look="check" of={check} show={show} />
      {first.length + check.length === 0 && (
        <p class="muted">No line does anything to this data that is likely a fault. What was meant is not known.</p>
      )}
      {possible.length > 0 && (
        <details>
          <summary>
            {possible.length === 1 ? "1 more that is only possible" : `${possible.length} more that are only possible`}
          </summary>
          <List title="Possible" look="possible" of={possible} show={show} />
        </details>
      )}
      {answer.not_looked.length > 0 && (
        <ul class="not-looked">
          {answer.not_looked.map((what) => (
            <li key={what}>Not looked at: {what}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function List(props: { title: string; look: string; of: Finding[]; show: (finding: Finding) => void }) {
  if (props.of.length === 0) return null;
  return (
    <div class={`finding-list is-${props.look}`}>
      <h3>{props.title}</h3>
      <ul>
        {props.of.map((finding) => (
          <li key={`${finding.kind} ${finding.line} ${finding.clause}`}>
            <button class="link" onClick={() => props.show(finding)}>
              line {finding.line}
            </button>
            <span>{plainText(finding.text)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
