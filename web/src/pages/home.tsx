import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { follow } from "../api/events";
import type { Activity, Summary } from "../api/records";
import { count, dateTime, day, duration, plural, titleOf } from "../format";
import { Failure, Loading } from "../parts/feedback";
import { Ago, Status } from "../parts/label";
import { useLoaded } from "../parts/loaded";
import { Panel } from "../parts/panel";
import { parameter } from "../router";
import { isAdmin, me } from "../session";
import { Page } from "../shell";
import { waitingWrites } from "../waiting";
import { Bars } from "./home_chart";
import { type Bar, costs, series, whyOtherTotal } from "./home_series";

const hour = 3_600_000; // milliseconds
const ranges: Record<string, { label: string; hours: number; step: number }> = {
  day: { label: "24 hours", hours: 24, step: 1 },
  week: { label: "7 days", hours: 7 * 24, step: 6 },
  month: { label: "30 days", hours: 30 * 24, step: 24 },
};

// useEvents counts what begins and ends, at most once in two seconds.
function useEvents(): number {
  const [number, setNumber] = useState(0);
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        setNumber((n) => n + 1);
      }, 2000);
    };
    const stop = follow("/executions/events", {}, { onEvent: soon });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, []);
  return number;
}

// Home shows what runs, what failed, what waits for the person, and how it was over time.
export function Home() {
  const events = useEvents();
  const chosen = parameter("last") in ranges ? parameter("last") : "day";
  const range = ranges[chosen]!;
  return (
    <Page
      title="Home"
      intro={
        isAdmin.value
          ? "What all users run, what failed, and what waits for you."
          : `What runs with your keys, ${me.value?.user_id}, and what failed.`
      }
      actions={
        <span class="tabs" role="group" aria-label="Time of the charts">
          {Object.entries(ranges).map(([name, { label }]) => (
            <a key={name} href={`/ui/?last=${name}`} aria-current={name === chosen ? "true" : undefined}>
              {label}
            </a>
          ))}
        </span>
      }
    >
      {isAdmin.value && <WaitsForMe />}
      <Charts hours={range.hours} step={range.step} events={events} />
      <div class="run-lists">
        <Runs title="Running now" status="running" events={events} none="Nothing runs." />
        <Runs title="Failed last" status="failed" events={events} none="Nothing has failed." />
      </div>
    </Page>
  );
}

function WaitsForMe() {
  const number = waitingWrites.value;
  if (number === 0) return <p class="muted">No write waits for your decision.</p>;
  return (
    <p class="notice warn">
      <strong>
        {plural(number, "write")} of the database {number === 1 ? "waits" : "wait"} for your decision
      </strong>
      <a href="/ui/writes">Review {number === 1 ? "it" : "them"}</a>
    </p>
  );
}

function Runs(props: { title: string; status: "running" | "failed"; events: number; none: string }) {
  const { answer, problem, reload } = useLoaded<{ executions: Summary[] }>(
    `/executions?status=${props.status}&work=true&limit=6`,
    [props.events],
  );
  return (
    <Panel title={props.title} actions={<a href={`/ui/executions?status=${props.status}`}>All</a>}>
      {problem && <Failure problem={problem} retry={reload} />}
      {!answer && !problem && <Loading what="executions" />}
      {answer?.executions.length === 0 && <p class="body muted">{props.none}</p>}
      <ul class="runs">
        {answer?.executions.map((e) => (
          <li key={e.execution_id}>
            <Status of={e.status} />
            <a href={`/ui/executions/${encodeURIComponent(e.execution_id)}`}>{titleOf(e) || "no code"}</a>
            <span class="muted">
              {isAdmin.value && `${e.user_id}, `}
              <Ago at={e.created_at} />
            </span>
            {e.error && <span class="why">{e.error}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Charts({ hours, step, events }: { hours: number; step: number; events: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => setNow(Date.now()), [events, hours]);
  const since = new Date(Math.floor(now / hour) * hour - (hours - 1) * hour).toISOString();
  const { answer, problem, reload } = useLoaded<Activity>(`/activity?work=true&since=${encodeURIComponent(since)}`, [
    events,
  ]);
  if (problem && !answer) return <Failure problem={problem} retry={reload} />;
  if (!answer) return <Loading what="the charts" />;
  const bars = series(answer.hours, Date.parse(answer.since), now, step);
  const titleOfBar = (text: string, { at }: Bar) =>
    `${step < 24 ? dateTime(new Date(at).toISOString()).slice(0, 16) : day(new Date(at))}: ${text}`;
  const sum = (of: (bar: Bar) => number) => bars.reduce((total, bar) => total + of(bar), 0);
  const begin = step < 24 && hours <= 24 ? dateTime(answer.since).slice(11, 16) : day(new Date(answer.since));
  const chart = (title: string, of: (bar: Bar) => number, text: (n: number) => string) => (
    <Chart title={title} value={text(sum(of))} begin={begin}>
      <Bars
        parts={[{ values: bars.map(of), class: title === "Failures" ? "failed" : "series-0" }]}
        titles={bars.map((bar) => titleOfBar(text(of(bar)), bar))}
        label={`${title}: ${text(sum(of))}`}
      />
    </Chart>
  );
  const failed = sum((bar) => bar.failed);
  const runs = sum((bar) => bar.executions);
  return (
    <div class="charts">
      <Chart title="Runs" value={count(runs)} note={failed > 0 ? `${count(failed)} failed` : ""} begin={begin}>
        <Bars
          parts={[
            { values: bars.map((bar) => bar.failed), class: "failed" },
            { values: bars.map((bar) => bar.executions - bar.failed), class: "series-0" },
          ]}
          titles={bars.map((bar) => titleOfBar(`${plural(bar.executions, "run")}, ${count(bar.failed)} failed`, bar))}
          label={`${plural(runs, "run")}, ${count(failed)} failed`}
        />
      </Chart>
      {chart(
        "Failures",
        (bar) => bar.failed,
        (n) => count(n),
      )}
      {chart(
        "Rows read",
        (bar) => bar.rows_read,
        (n) => count(n),
      )}
      {chart(
        "CPU time",
        (bar) => bar.cpu_ms,
        (n) => duration(n),
      )}
      <Costs of={answer} charted={sum((bar) => bar.cpu_ms)} />
    </div>
  );
}

function Chart(props: { title: string; value: string; note?: string; begin: string; children: ComponentChildren }) {
  const { title, value, note, begin, children } = props;
  return (
    <section class="chart" aria-label={title}>
      <h2>{title}</h2>
      <p class="value">
        {value} {note && <small class="muted">{note}</small>}
      </p>
      {children}
      <p class="ends muted" aria-hidden="true">
        <span>{begin}</span>
        <span>now</span>
      </p>
    </section>
  );
}

// Costs shows the CPU time of each key by day. charted is the CPU time of the chart above, which may be another.
function Costs({ of: activity, charted }: { of: Activity; charted: number }) {
  const { days, keys } = costs(activity.keys);
  if (keys.length === 0) return null;
  const total = keys.reduce((sum, key) => sum + key.total, 0);
  const otherTotal = whyOtherTotal(total, charted, activity.since);
  return (
    <section class="chart wide" aria-label="Cost by key">
      <h2>CPU time by key and day (UTC)</h2>
      <p class="value">{duration(total)}</p>
      {/* One day is one bar, which says nothing. */}
      {days.length > 1 && (
        <Bars
          parts={keys.map(({ days: values }, n) => ({ values, class: `series-${n}` }))}
          titles={days.map((at, n) =>
            [at, ...keys.filter((key) => key.days[n]).map((key) => `${key.name}: ${duration(key.days[n]!)}`)].join(
              "\n",
            ),
          )}
          label={`CPU time by key: ${keys.map(({ name, total }) => `${name} ${duration(total)}`).join(", ")}`}
        />
      )}
      <ul class="legend">
        {keys.map(({ name, total }, n) => (
          <li key={name}>
            <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
              <rect class={`series-${n}`} width="10" height="10" rx="2" />
            </svg>
            {name} <span class="muted">{duration(total)}</span>
          </li>
        ))}
      </ul>
      {otherTotal && <p class="chart-note muted">{otherTotal}</p>}
    </section>
  );
}
