import { path } from "../router";
import { Page } from "../shell";
import { Execution } from "./execution";
import { Executions } from "./executions";

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not an encoded text
  }
}

// Routes shows the page of the address.
export function Routes() {
  const [first, second, third] = path.value.slice(1).split("/").map(decoded);
  if (third === undefined) {
    switch (first) {
      case "":
        return <Executions />;
      case "executions":
        if (second) return <Execution key={second} id={second} />;
    }
  }
  return (
    <Page title="Not found">
      <p>There is no page at this address. <a href="/ui/">Go to the executions</a>.</p>
    </Page>
  );
}
