import type { Query } from "../api/client";
import { kinds, type Summary, statuses } from "../api/records";
import { own } from "../format";
import { Choice, Filters, TextFilter, TimeChoice, timeNames, timeQuery } from "../parts/filters";
import { parameter } from "../router";
import { isAdmin } from "../session";

export const filterNames = ["user", "status", "kind", "sandbox", "tag", "text", ...timeNames];

export interface Filter {
  query: Query; // of the API
  // matches reports whether a new execution belongs into the list; undefined: the list is of the past, or only the
  // service can tell.
  matches: ((e: Summary) => boolean) | undefined;
}

// tagsOf returns the tags of a text such as "team:risk ticket:OPS-12". The value of a tag ends before the next tag, so it may have
// spaces.
export function tagsOf(text: string): string[] {
  return text.trim() ? text.trim().split(/\s+(?=[A-Za-z0-9_.-]+:)/) : [];
}

function hasTag(e: Summary, tag: string): boolean {
  const [name, value] = [tag.slice(0, tag.indexOf(":")), tag.slice(tag.indexOf(":") + 1)];
  return own(e.tags ?? {}, name) === value;
}

// currentFilter reads the filter from the address.
export function currentFilter(): Filter {
  const tags = tagsOf(parameter("tag"));
  const query = {
    user_id: parameter("user"),
    status: parameter("status"),
    kind: parameter("kind"),
    sandbox_id: parameter("sandbox"),
    tag: tags,
    text: parameter("text"),
    ...timeQuery(),
  };
  const matches =
    query.text || query.until
      ? undefined
      : (e: Summary) =>
          (!query.user_id || e.user_id === query.user_id) &&
          (!query.status || e.status === query.status) &&
          (!query.kind || e.kind === query.kind) &&
          (!query.sandbox_id || e.sandbox_id === query.sandbox_id) &&
          tags.every((tag) => hasTag(e, tag));
  return { query, matches };
}

// FilterBar has the controls of the filters of executions.
export function FilterBar() {
  return (
    <Filters label="Filter executions" names={filterNames}>
      <TextFilter name="text" label="Text in code or error" placeholder="Search code and errors" keys="/" />
      <Choice name="status" label="Status" any="Any status" values={statuses} />
      <Choice name="kind" label="Kind" any="Any kind" values={kinds} />
      <TextFilter name="tag" label="Tags" placeholder="Tags, as team:risk" />
      <TimeChoice />
      {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
    </Filters>
  );
}
