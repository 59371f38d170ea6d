import type { Limits } from "../api/records";
import { bytes, count, days, megabytes, plural } from "../format";

// time returns seconds in words, without a part that is zero: "10 min" instead of "10 min 0 s".
const time = (seconds: number) => (seconds < 60 ? plural(seconds, "second") : days(seconds).replace(/ 0 (s|min)$/, ""));

// limitsInWords returns what code in a sandbox may do, as pairs of a subject and a sentence about it.
export function limitsInWords(of: Limits): [subject: string, text: string][] {
  const cpu = of.cpu_percent === 100 ? "one CPU" : `${of.cpu_percent} % of a CPU`;
  return [
    ["A run", `at most ${time(of.max_execution_time)}, ${megabytes(of.max_memory_mb)} of memory, ${cpu}`],
    ["Parallel", `${plural(of.max_processes, "process", "processes")}, ${plural(of.max_threads, "thread")}`],
    ["A query", `at most ${plural(of.max_rows, "row")}; the rest is cut off`],
    ["Output", `at most ${bytes(of.max_output_size)} of stdout and of stderr`],
    ["Writes", of.write_policy === "capture" ? "wait until an admin applies them" : "are refused"],
    ["Network", network(of)],
    ["Files", files(of)],
    ["Modules", modules(of)],
    ["Environment", of.environment],
    ["Recording", of.record === "always" ? "each run is recorded" : "only debugged runs, and those that ask for it"],
    ["End", `after ${time(of.idle_timeout)} without use, and at the latest ${time(of.lifetime)} after its beginning`],
  ];
}

function network(of: Limits): string {
  if (!of.enable_network_access) return "none";
  return of.allowed_hosts.length > 0 ? of.allowed_hosts.join(", ") : "allowed, but no host is";
}

function files(of: Limits): string {
  if (!of.enable_file_access) return "none";
  return (
    `${bytes(of.upload_max_bytes)} of uploads, ${bytes(of.workspace_max_bytes)} that code writes, ` +
    `at most ${bytes(of.file_max_bytes)} each`
  );
}

const maxNamed = 8; // modules

function named(modules: string[]): string {
  const more = modules.length - maxNamed;
  return modules.slice(0, maxNamed).join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

function modules(of: Limits): string {
  const allowed = of.allowed_modules.length > 0 ? `only ${named(of.allowed_modules)}` : `of the profile ${of.profile}`;
  return of.blocked_modules.length > 0 ? `${allowed}, without ${named(of.blocked_modules)}` : allowed;
}
