import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import { bytes, count, duration, fullTime, megabytes } from "../format";
import { Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { Page } from "../shell";

type Tree = { [name: string]: unknown };

const interval = 5000; // milliseconds between two readings

// System shows the state of the service, and follows it while the page is seen.
export function System() {
  const [system, setSystem] = useState<Tree>();
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const request = new AbortController();
    let timer = 0;
    const read = async () => {
      if (!document.hidden) {
        try {
          setSystem(await get<Tree>("/system", {}, request.signal));
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
  const single = Object.entries(system ?? {}).filter(([, value]) => !isTree(value));
  const groups = Object.entries(system ?? {}).filter((entry): entry is [string, Tree] => isTree(entry[1]));
  return (
    <Page title="System">
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!system && !problem && <Loading what="the state of the service" />}
      {system && (
        <div class="cards">
          {single.length > 0 && <Panel title="Service"><Facts of={Object.fromEntries(single)} /></Panel>}
          {groups.map(([name, group]) => <Panel key={name} title={titleOf(name)}><Facts of={group} /></Panel>)}
        </div>
      )}
    </Page>
  );
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function Facts({ of }: { of: Tree }) {
  return (
    <dl class="body">
      {Object.entries(of).map(([name, value]) => (
        <><dt key={name}>{titleOf(name)}</dt><dd>{shown(name, value)}</dd></>
      ))}
    </dl>
  );
}

const units = /_(bytes|mb|ms|seconds|at)$/;

// titleOf returns the name of a field as words, without its unit.
function titleOf(name: string): string {
  const words = name.replace(units, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// shown returns a value with the unit that the field's name ends in.
function shown(name: string, value: unknown): ComponentChildren {
  if (value === null || value === undefined || value === "") return <span class="muted">none</span>;
  if (isTree(value)) return <Facts of={value} />;
  if (Array.isArray(value)) {
    return value.length === 0 ? <span class="muted">none</span> : <ul class="values">{value.map((v, i) => <li key={i}>{shown(name, v)}</li>)}</ul>;
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return name.endsWith("_at") ? fullTime(value) : value;
  if (typeof value !== "number") return String(value);
  switch (units.exec(name)?.[1]) {
    case "bytes":
      return bytes(value);
    case "mb":
      return megabytes(value);
    case "ms":
      return duration(value);
    case "seconds":
      return duration(value * 1000);
  }
  return count(value);
}
