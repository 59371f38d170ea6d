import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Occupancy, SystemStatus } from "../api/records";
import { bytes, count, days, duration, fullTime, plural } from "../format";
import { useDatabases } from "../parts/databases";
import { Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { Page } from "../shell";

const interval = 5000; // milliseconds between two readings

// System shows the state of the service, and follows it while the page is seen.
export function System() {
  const [system, setSystem] = useState<SystemStatus>();
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const request = new AbortController();
    let timer = 0;
    const read = async () => {
      if (!document.hidden) {
        try {
          setSystem(await get<SystemStatus>("/system", {}, request.signal));
          setProblem(undefined);
        } catch (thrown) {
          if (isAborted(thrown)) return;
          setProblem(Problem.from(thrown));
        }
      }
      timer = window.setTimeout(read, interval);
    };
    void read();
    return () => {
      request.abort();
      window.clearTimeout(timer);
    };
  }, [attempt]);
  return (
    <Page title="System" intro="How full the service is, how it isolates code, and what it keeps.">
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!system && !problem && <Loading what="the state of the service" />}
      {system && <State of={system} />}
    </Page>
  );
}

function State({ of: system }: { of: SystemStatus }) {
  return (
    <>
      <Cards of={system} />
      <Databases />
      <Environments list={system.environments ?? []} />
      <WarmPools list={system.warm_pools} />
      <Limits enforcedBy={system.enforced_by ?? {}} />
    </>
  );
}

function Cards({ of: system }: { of: SystemStatus }) {
  return (
    <div class="cards">
      <Panel title="Service">
        <dl class="body">
          <dt>Version</dt>
          <dd>{system.version}</dd>
          <dt>Started</dt>
          <dd>{fullTime(system.started_at)}</dd>
          <dt>Runs for</dt>
          <dd>{duration(Date.now() - new Date(system.started_at).getTime())}</dd>
          <dt>Isolation</dt>
          <dd>{system.isolation}</dd>
        </dl>
      </Panel>
      <Panel title="Occupancy">
        <dl class="body">
          <dt>Executions</dt>
          <dd>
            <Meter label="Executions" of={system.executions} />
          </dd>
          <dt>Sandboxes</dt>
          <dd>
            <Meter label="Sandboxes" of={system.sandboxes} />
          </dd>
          <dt>Per user</dt>
          <dd>at most {plural(system.sandboxes_per_user, "sandbox", "sandboxes")}</dd>
        </dl>
      </Panel>
      <History of={system} />
    </div>
  );
}

// keptRows says what history keeps of the rows that code has read.
const keptRows = {
  rows: "kept with each execution, so that it can be replayed (--input-log)",
  hashes: "not kept, only their hashes (--input-log hashes)",
  off: "not kept (--input-log off)",
};

function History({ of: { history, retention, input_log } }: { of: SystemStatus }) {
  return (
    <Panel title="History" danger={!!history.error}>
      <dl class="body">
        {history.error && (
          <>
            <dt>Problem</dt>
            <dd class="why">{history.error}</dd>
          </>
        )}
        <dt>Waiting</dt>
        <dd>
          {plural(history.waiting_records, "record")}, {bytes(history.waiting_bytes)}
        </dd>
        <dt>Delay</dt>
        <dd>{duration(history.waiting_seconds * 1000)}</dd>
        <dt>Database</dt>
        <dd>{bytes(history.database_bytes)}</dd>
        <dt>Free disk</dt>
        <dd>{bytes(history.free_bytes)}</dd>
        <dt>Kept</dt>
        <dd>{kept(retention)}</dd>
        <dt>Rows that code has read</dt>
        <dd>{keptRows[input_log]}</dd>
        {retention.deleted_executions > 0 && (
          <>
            <dt>Deleted</dt>
            <dd>
              {plural(retention.deleted_executions, "execution")} since the start
              {retention.deleting && ", more follow"}
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

function Databases() {
  const databases = useDatabases();
  return (
    <>
      <h2 class="section">Databases</h2>
      <div class="scroll-x list" tabIndex={0} role="group" aria-label="Table of databases">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">PostgreSQL</th>
            </tr>
          </thead>
          <tbody>
            {databases.map((d) => (
              <tr key={d.name}>
                <td>
                  {d.name}
                  {d.default && <span class="muted"> (default)</span>}
                </td>
                <td>{d.problem ? <span class="why">{d.problem}</span> : d.status}</td>
                <td>{d.server_version}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Environments({ list }: { list: NonNullable<SystemStatus["environments"]> }) {
  return (
    <>
      <h2 class="section">Environments</h2>
      <div class="scroll-x list" tabIndex={0} role="group" aria-label="Table of environments">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Python</th>
              <th scope="col" class="number">
                Packages
              </th>
              <th scope="col">Added modules</th>
              <th scope="col">Digest</th>
            </tr>
          </thead>
          <tbody>
            {list.map((e) => (
              <tr key={e.name}>
                <td>{e.name}</td>
                <td>{e.python}</td>
                <td class="number">{count(e.packages)}</td>
                <td>{e.modules?.length ? e.modules.join(", ") : <span class="muted">none</span>}</td>
                <td>
                  <code title={e.digest}>{e.digest.slice(0, 12)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function WarmPools({ list }: { list: SystemStatus["warm_pools"] }) {
  return (
    <>
      <h2 class="section">Warm interpreters</h2>
      <div class="scroll-x list" tabIndex={0} role="group" aria-label="Table of warm interpreters">
        <table>
          <thead>
            <tr>
              <th scope="col">Environment</th>
              <th scope="col">Name</th>
              <th scope="col">Imported</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Waiting
              </th>
              <th scope="col" class="number">
                In use
              </th>
            </tr>
          </thead>
          <tbody>
            {list.map((pool) => (
              <tr key={`${pool.environment} ${pool.name}`}>
                <td>{pool.environment}</td>
                <td>{pool.name}</td>
                <td>{pool.modules.length > 0 ? pool.modules.join(", ") : <span class="muted">none</span>}</td>
                <td>
                  {pool.problem ? (
                    <span class="why">{pool.problem}</span>
                  ) : pool.warm ? (
                    "warm"
                  ) : (
                    <span class="muted">starts when it is needed</span>
                  )}
                </td>
                <td class="number">
                  {count(pool.waiting.now)} of {count(pool.waiting.max)}
                </td>
                <td class="number">{count(pool.in_use)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Limits({ enforcedBy }: { enforcedBy: Record<string, string> }) {
  return (
    <>
      <h2 class="section">What enforces each limit</h2>
      <div class="scroll-x list" tabIndex={0} role="group" aria-label="Table of limits">
        <table>
          <thead>
            <tr>
              <th scope="col">Limit</th>
              <th scope="col">Mechanism</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(enforcedBy).map(([limit, by]) => (
              <tr key={limit}>
                <td>
                  <code>{limit}</code>
                </td>
                <td>{by}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

// kept says which executions history keeps.
function kept({ max_age_seconds: age, max_bytes: size }: SystemStatus["retention"]): string {
  const limits = [age > 0 && `for ${days(age)}`, size > 0 && `up to ${bytes(size)}`].filter(Boolean);
  return limits.length > 0 ? `${limits.join(", ")}; the oldest are deleted` : "everything";
}

function Meter({ label, of }: { label: string; of: Occupancy }) {
  return (
    <>
      {count(of.now)} of {count(of.max)}
      <meter aria-label={label} min={0} max={Math.max(1, of.max)} high={of.max * 0.9} value={of.now} />
    </>
  );
}
