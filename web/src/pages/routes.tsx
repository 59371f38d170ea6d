import type { FunctionComponent } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { lazily } from "../parts/lazy";
import { navigate, path, query } from "../router";
import { Page } from "../shell";
import { Artifacts } from "./artifacts";
import { Audit } from "./audit";
import { Connections } from "./connections";
import { Execution } from "./execution";
import { Executions } from "./executions";
import { Home } from "./home";
import { Keys } from "./keys";
import { Sandboxes } from "./sandboxes";
import { Statements } from "./statements";
import { System } from "./system";
import { Writes } from "./writes";

const Chat = lazily("Chat", async () => (await import("./chat")).Chat);
const Compare = lazily("Two runs side by side", async () => (await import("../compare/compare")).Compare);
const Debugger = lazily("Debugger", async () => (await import("./debug")).Debugger);
const SandboxPage = lazily("Sandbox", async () => (await import("./sandbox")).SandboxPage);
const Steps = lazily("Steps", async () => (await import("./steps")).Steps);
const Playground = lazily("Playground", async () => (await import("./play")).Playground);

const pages = new Map<string, FunctionComponent>([
  ["/", Home],
  ["/executions", Executions],
  ["/artifacts", Artifacts],
  ["/audit", Audit],
  ["/compare", Compare],
  ["/connections", Connections],
  ["/debug", Debugger],
  ["/keys", Keys],
  ["/play", Playground],
  ["/sandboxes", Sandboxes],
  ["/statements", Statements],
  ["/system", System],
  ["/writes", Writes],
]);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not an encoded text
  }
}

// Routes shows the page of the address.
export function Routes() {
  // The list of executions was the first page: links to it with a filter still work.
  const isOldLink = path.value === "/" && [...query.value.keys()].some((name) => name !== "last");
  useLayoutEffect(() => {
    if (isOldLink) navigate(`/ui/executions?${query.peek()}`, true);
  }, [isOldLink]);
  if (isOldLink) return null;
  const Shown = pages.get(path.value);
  if (Shown) return <Shown />;
  const execution = /^\/executions\/([^/]+)$/.exec(path.value)?.[1];
  if (execution) return <Execution key={execution} id={decoded(execution)} />;
  const recorded = /^\/executions\/([^/]+)\/steps$/.exec(path.value)?.[1];
  if (recorded) return <Steps key={recorded} id={decoded(recorded)} />;
  const sandbox = /^\/sandboxes\/([^/]+)$/.exec(path.value)?.[1];
  if (sandbox) return <SandboxPage key={sandbox} id={decoded(sandbox)} />;
  const conversation = /^\/chat(?:\/([^/]+))?$/.exec(path.value);
  if (conversation) return <Chat id={decoded(conversation[1] ?? "")} />;
  return (
    <Page title="Not found">
      <p>
        There is no page at this address. <a href="/ui/executions">Go to the executions</a>.
      </p>
    </Page>
  );
}
