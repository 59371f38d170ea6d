import type { Query } from "../api/client";
import { type Annotations, kinds, type Summary, statuses } from "../api/records";
import {
  Choice,
  Filters,
  ReplayChoice,
  TextFilter,
  TimeChoice,
  timeNames,
  timeQuery,
  workQuery,
} from "../parts/filters";
import { parameter } from "../router";
import { isAdmin } from "../session";

// Field is a filter by what the summary of an execution has.
interface Field {
  parameter: string; // of the API
  valuesOf: (e: Summary) => (string | undefined)[];
  wanted?: (text: string) => string[]; // the values that a text in the address asks for; undefined: the text itself
}

// fields are the filters by their names in the address, apart from text and time.
const fields: Record<string, Field> = {
  user: { parameter: "user_id", valuesOf: (e) => [e.user_id] },
  status: { parameter: "status", valuesOf: (e) => [e.status] },
  kind: { parameter: "kind", valuesOf: (e) => [e.kind] },
  sandbox: { parameter: "sandbox_id", valuesOf: (e) => [e.sandbox_id] },
  tag: {
    parameter: "tag",
    valuesOf: (e) => Object.entries(e.tags ?? {}).map(([name, value]) => `${name}:${value}`),
    wanted: tagsOf,
  },
};

export const filterNames = [...Object.keys(fields), "text", "replays", ...timeNames];

// annotationsOf returns what a client said about an execution, with the query of the page that lists those with the same.
export function annotationsOf(e: Annotations): { label: string; text: string; query: Record<string, string> }[] {
  const all: ReturnType<typeof annotationsOf> = [];
  for (const [name, text] of Object.entries(e.tags ?? {})) {
    all.push({ label: `Tag ${name}`, text, query: { tag: `${name}:${text}` } });
  }
  return all;
}

export interface Filter {
  query: Query; // of the API
  // matches reports whether a new execution belongs into the list; undefined: the list is of the past, or only the
  // service can tell.
  matches: ((e: Summary) => boolean) | undefined;
  // leavesOut reports whether the list would have a new execution if it had replays and explanations.
  leavesOut: (e: Summary) => boolean;
}

// tagsOf returns the tags of a text such as "team:risk ticket:OPS-12". The value of a tag ends before the next tag, so it may have
// spaces.
export function tagsOf(text: string): string[] {
  return text.trim() ? text.trim().split(/\s+(?=[A-Za-z0-9_.-]+:)/) : [];
}

// isBesidesWork reports whether people ran it to look at the work of others, as the service decides it.
const isBesidesWork = (e: Summary) => e.kind === "replay" || e.is_explanation === true;

// currentFilter reads the filter from the address.
export function currentFilter(): Filter {
  const set = Object.entries(fields).map(([name, { wanted = (text: string) => (text ? [text] : []), ...field }]) => ({
    ...field,
    values: wanted(parameter(name)),
  }));
  const order = parameter("order");
  const query = {
    ...Object.fromEntries(set.map((field) => [field.parameter, field.values])),
    text: parameter("text"),
    order,
    ...timeQuery(),
    ...(parameter("kind") === "replay" ? { work: "" } : workQuery()),
  };
  const isSelected = (e: Summary) =>
    set.every(({ values, valuesOf }) => values.every((value) => valuesOf(e).includes(value)));
  const leavesOut = (e: Summary) => query.work !== "" && isBesidesWork(e) && isSelected(e);
  const matches =
    query.text || query.until || order
      ? undefined
      : (e: Summary) => isSelected(e) && !(query.work !== "" && isBesidesWork(e));
  return { query, matches, leavesOut };
}

// FilterBar has the controls of the filters of executions.
export function FilterBar() {
  return (
    <Filters label="Filter executions" names={filterNames}>
      <TextFilter
        name="text"
        label="Text in title, code, error or output"
        placeholder="Search titles, code and output"
        keys="/"
      />
      <Choice name="status" label="Status" any="Any status" values={statuses} />
      <Choice name="kind" label="Kind" any="Any kind" values={kinds} />
      <TextFilter name="tag" label="Tags" placeholder="Tags, as team:risk" />
      <TimeChoice />
      <ReplayChoice />
      {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
    </Filters>
  );
}
