import { type ComponentChildren, Fragment } from "preact";
import type { Why } from "../api/records";
import { count, duration, plural } from "../format";
import { Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { clipped, type Did, type Shown, sectionsOf } from "./answer";
import { CellOrigin, Origin } from "./cell_origin";
import type { Jump } from "./line_address";
import type { Asked } from "./use_why";

// longValue is the length in characters from which on a value does not fit into a heading.
const longValue = 40;

const maxSteps = 6; // of the chain, that are shown at once
const maxReads = 3;
const maxOpen = 4; // lines, from which on what they did is folded
const maxValue = 48; // characters of a value in the chain

// titleOf returns the heading of an answer.
export function titleOf({ name, value = "" }: Pick<Why, "name" | "value">): string {
  const what = name === "result" ? "the result" : name;
  return value.length > longValue || value === "" ? `Why ${what} has this value` : `Why ${what} is ${value}`;
}

// WhyPanel says why a variable has its value: what may be wrong first, then what the lines did, then the lines that made it.
// The facts come from a run of the same code, which takes about ms milliseconds.
export function WhyPanel(props: {
  asked: Asked;
  path: string;
  ms: number;
  jump: Jump;
  close?: () => void;
  note?: ComponentChildren; // below the heading
}) {
  const { asked, path, jump } = props;
  const { why, problem, isLooking, look } = asked;
  const close = props.close && (
    <button aria-label="Close the answer" onClick={props.close}>
      Close
    </button>
  );
  if (!why)
    return (
      <Panel title="Why" actions={close}>
        <div class="body">{problem ? <Failure problem={problem} /> : <Loading what="the answer" />}</div>
      </Panel>
    );
  const sections = sectionsOf(why);
  const isVariable = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(why.name) && why.name !== "result";
  return (
    <section class="panel why-panel" aria-label="Why">
      <header>
        <h2>
          <span>{titleOf(why)}</span>
        </h2>
        {close}
      </header>
      {props.note && <p class="why-none">{props.note}</p>}
      <Findings title="Check first" look="evident" list={sections.first} jump={jump} />
      {why.cell && <Origin of={why.cell} jump={jump} />}
      <Findings title="Check if intended" look="possible" list={sections.intended} jump={jump} />
      {sections.first.length + sections.intended.length === 0 && why.replay_id && (
        <p class="why-none">Nothing unusual was found in the lines that made it.</p>
      )}
      {isLooking && (
        <p class="loading why-none" role="status">
          <span class="spinner" aria-hidden="true" /> Running the code again to look at its values…
        </p>
      )}
      {!why.replay_id && !isLooking && (why.steps ?? []).length > 0 && (
        <p class="why-none">
          <button onClick={look}>Look at the values in between (runs again, {duration(props.ms)})</button>
        </p>
      )}
      {problem && <Failure problem={problem} />}
      <WhatLinesDid of={sections.facts} jump={jump} />
      <Chain of={why} jump={jump} />
      {sections.more.length > 0 && (
        <details class="why-more">
          <summary>{plural(sections.more.length, "more remark")}</summary>
          <Findings title="" look="did" list={sections.more} jump={jump} />
        </details>
      )}
      {isVariable && <CellOrigin path={path} name={why.name} type={why.type ?? ""} jump={jump} />}
      <Open of={why} />
    </section>
  );
}

// Findings is a list of findings or facts, each with its line.
function Findings({ title, look, list, jump }: { title: string; look: string; list: Shown[]; jump: Jump }) {
  if (list.length === 0) return null;
  return (
    <div class={`why-part ${look}`}>
      {title && <h3>{title}</h3>}
      <ul>
        {list.map(({ line, step, code, text }, index) => (
          <li key={index}>
            <span class="why-line">{line > 0 && jump({ line, step }, `line ${line}`)}</span>
            <span>
              {code && <code title={code}>{clipped(code, 70)}</code>} <span class="why-text">{text}</span>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

// WhatLinesDid lists what the other lines did, folded if it is long.
function WhatLinesDid({ of: lines, jump }: { of: Did[]; jump: Jump }) {
  if (lines.length === 0) return null;
  const list = (
    <ul>
      {lines.map(({ line, parts }) => (
        <li key={line}>
          <span class="why-line">{jump({ line, step: 0 }, `line ${line}`)}</span>
          <span>
            {parts.map(({ code, text }, index) => (
              <div key={index}>
                <code title={code}>{clipped(code, 70)}</code> <span class="why-text">{text}</span>
              </div>
            ))}
          </span>
        </li>
      ))}
    </ul>
  );
  return (
    <div class="why-part did">
      {lines.length > maxOpen ? (
        <details>
          <summary>What these {lines.length} lines did</summary>
          {list}
        </details>
      ) : (
        <>
          <h3>What these lines did</h3>
          {list}
        </>
      )}
    </div>
  );
}

// Chain has the lines that made the value, the last first.
function Chain({ of: why, jump }: { of: Why; jump: Jump }) {
  const steps = why.steps ?? [];
  if (steps.length === 0) return null;
  const line = (cause: (typeof steps)[number]) => (
    <li key={`${cause.step} ${cause.name}`}>
      <span class="why-line">{jump({ line: cause.line_number, step: cause.step }, `line ${cause.line_number}`)}</span>
      <span>
        <code title={cause.line_code.trim()}>{clipped(cause.line_code, 90)}</code> <Effect of={cause} />
      </span>
    </li>
  );
  return (
    <div class="why-part chain">
      <h3>Made by, the last line first</h3>
      <ul>{steps.slice(0, maxSteps).map(line)}</ul>
      {steps.length > maxSteps && (
        <details>
          <summary>{plural(steps.length - maxSteps, "earlier line")}</summary>
          <ul>{steps.slice(maxSteps).map(line)}</ul>
        </details>
      )}
    </div>
  );
}

// Effect says what a line did, and with what.
function Effect({ of }: { of: NonNullable<Why["steps"]>[number] }) {
  const { role, name, value, times, first_value: first, reads } = of;
  const shown = (reads ?? []).slice(0, maxReads);
  const set = name ? `${name} = ${clipped(value ?? "", maxValue)}` : clipped(value ?? "", maxValue);
  return (
    <span class="why-effect">
      {role === "condition" ? (
        "decided what ran"
      ) : (
        <>
          {role === "set" || role === "used" ? "" : `${role} `}
          {value !== undefined && <code title={value}>{set}</code>}
        </>
      )}
      {times > 1 && `, ran ${count(times)} times`}
      {first && first !== value && (
        <>
          , first <code>{clipped(first, maxValue)}</code>
        </>
      )}
      {shown.length > 0 && (
        <>
          {" from "}
          {shown.map((read, index) => (
            <Fragment key={read.name}>
              {index > 0 && ", "}
              <code title={read.value}>
                {read.name} = {clipped(read.value, maxValue)}
              </code>
            </Fragment>
          ))}
        </>
      )}
    </span>
  );
}

// Open lists what the answer does not tell.
function Open({ of: why }: { of: Why }) {
  const limits = [...(why.limits ?? []), ...(why.not_looked_at ?? []).map((what) => `not looked at: ${what}`)];
  const shown = limits.filter((limit) => !limit.includes("facts=false"));
  if (shown.length === 0) return null;
  return (
    <details class="why-more">
      <summary>What this answer does not tell</summary>
      <ul>
        {shown.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
      </ul>
    </details>
  );
}
