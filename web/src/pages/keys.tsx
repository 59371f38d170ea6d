import { useEffect, useRef, useState } from "preact/hooks";
import { post, remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Key, KeyLimits, Role } from "../api/records";
import { duration, plural } from "../format";
import { Copy, Empty, Failure, TwoSteps } from "../parts/feedback";
import { Status, Time, timeHeading } from "../parts/label";
import { ListTable, useList } from "../parts/list";
import { isAdmin, me } from "../session";
import { Page } from "../shell";

interface Created extends Key {
  key: string;
}

const lifetimes: Record<string, [label: string, days: number]> = {
  "1": ["1 day", 1],
  "30": ["30 days", 30],
  "365": ["365 days", 365],
  "": ["Never", 0],
};

const powers: Record<Role, string> = {
  agent: "An agent runs code and reads the records of its user. It cannot debug, read recorded steps or create keys.",
  developer: "A developer does what an agent does, debugs, reads recorded steps, and creates keys for the same user.",
  admin:
    "An admin sees all users, creates keys for them, decides on pending writes, erases records and reads the audit log.",
};

export function stateOf(key: Key): string {
  if (key.revoked_at) return "revoked";
  if (key.expires_at && new Date(key.expires_at) < new Date()) return "expired";
  return "active";
}

// Keys lists API keys, makes and revokes them.
export function Keys() {
  const list = useList<Key>("/keys", "keys", {}, false);
  const [created, setCreated] = useState<Created>();
  const [problem, setProblem] = useState<Problem>();
  const revoke = async (key: Key) => {
    setProblem(undefined);
    try {
      await remove(`/keys/${encodeURIComponent(key.id)}`);
      list.reload();
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
  };
  return (
    <Page title="Keys" intro="Programs, agents and people sign in with a key. Each acts for one user, with a role.">
      {me.value?.role === "agent" ? (
        <p class="notice">An agent's key cannot create keys. Ask an admin.</p>
      ) : (
        <NewKey
          done={(key) => {
            setCreated(key);
            list.reload();
          }}
        />
      )}
      {created && <Secret of={created} hide={() => setCreated(undefined)} />}
      {problem && <Failure problem={problem} />}
      <ListTable
        list={list}
        what="keys"
        id={(k) => k.id}
        empty={<Empty title="There are no keys.">An agent or a program signs in with one.</Empty>}
        columns={[
          {
            name: "Name",
            class: "name-cell",
            cell: (k) => (
              <>
                {k.name}
                {k.id === me.value?.key_id && <span class="muted"> (yours)</span>}
              </>
            ),
          },
          { name: "User", cell: (k) => k.user_id },
          { name: "Role", cell: (k) => k.role },
          { name: "State", cell: (k) => <Status of={stateOf(k)} /> },
          { name: "Limits", class: "limits-cell", cell: (k) => <Limits of={k} /> },
          {
            name: timeHeading("Created"),
            class: "nowrap",
            cell: (k) => (
              <>
                <Time at={k.created_at} />
                <div class="muted">{k.created_by ? `by ${k.created_by}` : "at the first start"}</div>
              </>
            ),
          },
          {
            name: timeHeading("Expires"),
            class: "nowrap",
            cell: (k) => (k.expires_at ? <Time at={k.expires_at} /> : <span class="muted">never</span>),
          },
          { name: "Key", cell: (k) => <code title={k.id}>{k.id.slice(0, 8)}</code> },
          {
            name: "Action",
            class: "actions-cell",
            cell: (k) =>
              stateOf(k) !== "active" ? null : (
                <TwoSteps
                  label="Revoke"
                  confirm={k.id === me.value?.key_id ? "Revoke your own key" : "Revoke it and the keys it made"}
                  danger
                  action={() => revoke(k)}
                />
              ),
          },
        ]}
      />
    </Page>
  );
}

const maxInline = 4; // names that a limit shows without a click

// Limits shows what restricts a key beyond its role and the limits of all keys.
function Limits({ of: { limits, databases, allowed_modules: allowed, blocked_modules: blocked } }: { of: Key }) {
  const {
    requests_per_minute: requests,
    concurrent_executions: concurrent,
    cpu_seconds_per_day: cpu,
    history_days: days,
    weight,
  } = limits;
  const amounts = [
    requests && `${plural(requests, "request")} a minute`,
    concurrent && `${plural(concurrent, "execution")} at once`,
    cpu && `${duration(cpu * 1000)} of CPU a day`,
    days && `${plural(days, "day")} in history`,
    weight && `weight ${weight}`,
  ].filter(Boolean);
  if (amounts.length === 0 && !databases && !allowed && !blocked) return <span class="muted">none of its own</span>;
  return (
    <ul class="limits">
      {amounts.length > 0 && <li>{amounts.join(", ")}</li>}
      {databases && <Named title="Databases:" count={plural(databases.length, "database")} names={databases} />}
      {allowed && (
        <Named title="Imports only" count={`Imports only ${plural(allowed.length, "module")}`} names={allowed} />
      )}
      {blocked && (
        <Named title="Does not import" count={`Does not import ${plural(blocked.length, "module")}`} names={blocked} />
      )}
    </ul>
  );
}

// Named shows the names of a limit. Long lists are closed at first.
function Named({ title, count, names }: { title: string; count: string; names: string[] }) {
  const list = names.join(", ");
  if (names.length <= maxInline)
    return (
      <li>
        {title} {list}
      </li>
    );
  return (
    <li>
      <details>
        <summary>{count}</summary>
        {list}
      </details>
    </li>
  );
}

const limitFields: { name: keyof KeyLimits; label: string; most: number }[] = [
  { name: "requests_per_minute", label: "Requests a minute", most: 2_147_483_647 },
  { name: "concurrent_executions", label: "Executions at once", most: 2_147_483_647 },
  { name: "cpu_seconds_per_day", label: "CPU seconds a day", most: 2_147_483_647 },
  { name: "history_days", label: "Days in history", most: 36_500 },
  { name: "weight", label: "Weight relative to other users", most: 100 },
];

function LimitFields({ of: limits, set }: { of: KeyLimits; set: (limits: KeyLimits) => void }) {
  return (
    <details class="note">
      <summary>Limits of this key</summary>
      <div class="limit-fields">
        {limitFields.map(({ name, label, most }) => (
          <label key={name}>
            {label}
            <input
              type="number"
              min={1}
              max={most}
              placeholder={name === "weight" ? "1" : "as all keys"}
              value={limits[name] ?? ""}
              onInput={({ currentTarget: { value } }) => set({ ...limits, [name]: value ? Number(value) : undefined })}
            />
          </label>
        ))}
      </div>
      <p class="muted">
        While users compete, one with the weight 3 gets three times as much of the machine as one with the weight 1.
      </p>
    </details>
  );
}

// Secret shows the secret of a new key, which the service does not show again.
function Secret({ of: key, hide }: { of: Created; hide: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [key.id]);
  return (
    <div class="notice warn" ref={box} tabIndex={-1} role="status">
      <strong>The secret of “{key.name}”. It is shown only now: copy it.</strong>
      <code class="secret">{key.key}</code>
      <span class="actions">
        <Copy label="Copy the secret" text={() => key.key} />
        <button onClick={hide}>I have copied it</button>
      </span>
    </div>
  );
}

function NewKey({ done }: { done: (key: Created) => void }) {
  const [name, setName] = useState("");
  const [user, setUser] = useState("");
  const [role, setRole] = useState<Role>("agent");
  const [days, setDays] = useState("30");
  const [limits, setLimits] = useState<KeyLimits>({});
  const [problem, setProblem] = useState<Problem>();
  const [running, setRunning] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setRunning(true);
    setProblem(undefined);
    try {
      const lifetime = lifetimes[days]![1];
      done(
        await post<Created>("/keys", {
          name: name.trim(),
          role,
          ...(user.trim() ? { user_id: user.trim() } : {}),
          ...(lifetime ? { expires_at: new Date(Date.now() + lifetime * 86_400_000).toISOString() } : {}),
          ...(isAdmin.value ? { limits } : {}),
        }),
      );
      setName("");
      setLimits({});
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
    setRunning(false);
  };
  const roles: Role[] = isAdmin.value ? ["agent", "developer", "admin"] : ["agent", "developer"];
  return (
    <form class="panel form" onSubmit={submit} aria-label="Create a key">
      <label>
        Name
        <input required maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {isAdmin.value && (
        <label>
          User
          <input
            maxLength={200}
            placeholder={me.value?.user_id}
            value={user}
            onInput={(event) => setUser(event.currentTarget.value)}
          />
        </label>
      )}
      <label>
        Role
        <select value={role} onChange={(event) => setRole(event.currentTarget.value as Role)}>
          {roles.map((r) => (
            <option key={r} value={r}>
              {r}
            </option>
          ))}
        </select>
      </label>
      <label>
        Expires
        <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
          {["1", "30", "365", ""].map((d) => (
            <option key={d} value={d}>
              {lifetimes[d]![0]}
            </option>
          ))}
        </select>
      </label>
      <button class="primary" disabled={running}>
        {running ? "Creating…" : "Create key"}
      </button>
      <p class="muted note">{powers[role]}</p>
      {isAdmin.value && <LimitFields of={limits} set={setLimits} />}
      {problem && (
        <p class="field-error" role="alert">
          {problem.message}
        </p>
      )}
    </form>
  );
}
