import { afterEach, expect, test } from "vitest";
import { type Call, EventStream, json, serve, settle } from "../testing/service";
import { DebugSession } from "./debug_session";

// Service answers for one debug session, whose program stands at a step.
class Service {
  where: Record<string, unknown> = { state: "stopped", step: 3, total_steps: 3, live: true, line_number: 2 };
  breakpoints = [{ id: 1, line: 2, verified: true }];
  frames = [
    { id: 31, line: 2, name: "double" },
    { id: 32, line: 6, name: "<module>" },
  ];
  readonly stream = new EventStream();
  readonly held: (() => void)[] = []; // answers to moves
  answer = (call: Call): Response | Promise<Response> => {
    const command = call.path.replace("/debug/sessions/d-1", "");
    const body = call.body as Record<string, number> | undefined;
    switch (command) {
      case "":
        return json({ execution_id: "e-1", where: this.where, breakpoints: this.breakpoints, result: null });
      case "/source":
        return json({ content: "total = 1\n" });
      case "/events":
        return this.stream.response;
      case "/stackTrace":
        return json({ stackFrames: this.frames });
      case "/scopes":
        return json({ scopes: [{ name: `of ${body!["frameId"]}`, variablesReference: 1 }] });
      case "/evaluate":
        return body!["expression"] === ("1/0" as unknown)
          ? json({ detail: "ZeroDivisionError" }, 422)
          : json({ result: "7" });
      case "/setBreakpoints":
        return json({ breakpoints: [{ id: 5, line: 4, verified: false, message: "no code" }] });
      case "/next":
      case "/stepIn":
      case "/continue":
        return new Promise((resolve) => this.held.push(() => resolve(json({ where: this.where }))));
      default:
        return json({}, 404);
    }
  };
}

let session: DebugSession;
afterEach(() => session.detach());

async function attach(service: Service): Promise<Call[]> {
  const calls = serve(service.answer);
  session = new DebugSession("d-1");
  await session.attach();
  await settle();
  return calls;
}

const commands = (calls: Call[]) => calls.map(({ path }) => path.split("/").at(-1));
const consoleText = () => session.console.value.map(({ category, text }) => `${category} ${text}`);

test("a session shows where its program stands", async () => {
  await attach(new Service());
  expect(session.code.value).toBe("total = 1\n");
  expect(session.executionID).toBe("e-1");
  expect(session.position.value?.step).toBe(3);
  expect(session.frame.value).toBe(31);
  expect(session.scopes.value[0]?.name).toBe("of 31");
});

test("the chosen frame stays while the program stands, and the innermost one is next after a step", async () => {
  const service = new Service();
  await attach(service);
  await session.choose(32);
  expect(session.scopes.value[0]?.name).toBe("of 32");
  service.stream.event("stopped", {});
  await settle();
  expect(session.frame.value).toBe(32);
  service.where = { ...service.where, step: 4 };
  service.stream.event("stopped", {});
  await settle();
  expect(session.frame.value).toBe(31);
});

test("while the program runs, it has no frames and no variables", async () => {
  const service = new Service();
  await attach(service);
  service.where = { ...service.where, state: "running" };
  service.stream.event("continued", {});
  await settle();
  expect(session.frames.value).toEqual([]);
  expect(session.scopes.value).toEqual([]);
});

test("of the moves before one is answered, only the last is done", async () => {
  const service = new Service();
  const calls = await attach(service);
  calls.length = 0;
  const moving = session.move("next");
  void session.move("stepIn");
  void session.move("continue");
  await settle();
  expect(commands(calls)).toEqual(["next"]);
  service.held[0]!();
  await settle();
  expect(commands(calls)).toEqual(["next", "continue"]);
  service.held[1]!();
  await moving;
  expect(commands(calls)).not.toContain("stepIn");
});

test("a program that runs takes no further move", async () => {
  const service = new Service();
  const calls = await attach(service);
  calls.length = 0;
  void session.move("continue");
  void session.move("next");
  await settle();
  service.where = { ...service.where, state: "running" };
  service.held[0]!();
  await settle();
  expect(commands(calls)).not.toContain("next");
});

test("the console has what the program prints, what was asked, and the last 2000 lines of it", async () => {
  const service = new Service();
  await attach(service);
  service.stream.event("output", { category: "stdout", output: "printed\n" });
  await settle();
  await session.evaluate("3 + 4");
  await session.evaluate("1/0");
  expect(consoleText()).toEqual([
    "stdout printed\n",
    "asked 3 + 4\n",
    "answer 7\n",
    "asked 1/0\n",
    "failure ZeroDivisionError\n",
  ]);
  for (let n = 0; n < 2100; n++) service.stream.event("output", { category: "stdout", output: `${n}\n` });
  await settle();
  expect(session.console.value).toHaveLength(2000);
  expect(consoleText().at(-1)).toBe("stdout 2099\n");
});

test("breakpoints keep their conditions, which the service does not repeat", async () => {
  const service = new Service();
  await attach(service);
  await session.setBreakpoints([{ line: 3, condition: "n > 1" }]);
  expect(session.breakpoints.value).toEqual([
    { id: 5, line: 4, verified: false, message: "no code", condition: "n > 1" },
  ]);
  service.stream.event("breakpoint", { breakpoint: { id: 5, verified: true } });
  await settle();
  expect(session.breakpoints.value[0]).toMatchObject({ line: 4, verified: true, condition: "n > 1" });
});

test("why a command failed is shown until another succeeds", async () => {
  await attach(new Service());
  await session.pause();
  expect(session.problem.value?.status).toBe(404);
  await session.choose(32);
  expect(session.problem.value).toBeUndefined();
});
