import { path } from "../router";
import { Page } from "../shell";
import { Executions } from "./executions";

// Routes shows the page of the address.
export function Routes() {
  switch (path.value) {
    case "/":
      return <Executions />;
  }
  return (
    <Page title="Not found">
      <p>There is no page at this address. <a href="/ui/">Go to the executions</a>.</p>
    </Page>
  );
}
