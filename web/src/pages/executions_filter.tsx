import { kinds, type Summary, statuses } from "../api/records";
import { Choice, Filters, TextFilter, TimeChoice, timeNames, timeQuery } from "../parts/filters";
import { parameter } from "../router";
import { isAdmin } from "../session";

export const filterNames = ["user", "status", "kind", "sandbox", "text", ...timeNames];

export interface Filter {
  query: Record<string, string>; // of the API
  // matches reports whether a new execution belongs into the list; undefined: the list is of the past, or only the
  // service can tell.
  matches: ((e: Summary) => boolean) | undefined;
}

// currentFilter reads the filter from the address.
export function currentFilter(): Filter {
  const query: Record<string, string> = {
    user_id: parameter("user"),
    status: parameter("status"),
    kind: parameter("kind"),
    sandbox_id: parameter("sandbox"),
    text: parameter("text"),
    ...timeQuery(),
  };
  const matches =
    query["text"] || query["until"]
      ? undefined
      : (e: Summary) =>
          (!query["user_id"] || e.user_id === query["user_id"]) &&
          (!query["status"] || e.status === query["status"]) &&
          (!query["kind"] || e.kind === query["kind"]) &&
          (!query["sandbox_id"] || e.sandbox_id === query["sandbox_id"]);
  return { query, matches };
}

// FilterBar has the controls of the filters of executions.
export function FilterBar() {
  return (
    <Filters label="Filter executions" names={filterNames}>
      <TextFilter name="text" label="Text in code or error" placeholder="Search code and errors" keys="/" />
      <Choice name="status" label="Status" any="Any status" values={statuses} />
      <Choice name="kind" label="Kind" any="Any kind" values={kinds} />
      <TimeChoice />
      {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
    </Filters>
  );
}
