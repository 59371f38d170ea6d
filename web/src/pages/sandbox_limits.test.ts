import { expect, test } from "vitest";
import type { Limits } from "../api/records";
import { limitsInWords } from "./sandbox_limits";

const limits: Limits = {
  max_execution_time: 30,
  max_memory_mb: 256,
  cpu_percent: 50,
  max_threads: 10,
  max_processes: 1,
  max_rows: 100_000,
  max_output_size: 1 << 20,
  upload_max_bytes: 5 << 20,
  workspace_max_bytes: 64 << 20,
  file_max_bytes: 50 << 20,
  lifetime: 3600,
  idle_timeout: 600,
  record: "never",
  enable_file_access: true,
  enable_network_access: false,
  allowed_hosts: [],
  allowed_modules: [],
  blocked_modules: [],
  environment: "default",
  profile: "analyst",
  write_policy: "reject",
};

const say = (changed: Partial<Limits>) => Object.fromEntries(limitsInWords({ ...limits, ...changed }));

test("the default limits are sentences with units", () => {
  expect(say({})).toEqual({
    "A run": "at most 30 seconds, 256 MB of memory, 50 % of a CPU",
    Parallel: "1 process, 10 threads",
    "A query": "at most 100,000 rows; the rest is cut off",
    Output: "at most 1.00 MB of stdout and of stderr",
    Writes: "are refused",
    Network: "none",
    Files: "5.00 MB of uploads, 64.0 MB that code writes, at most 50.0 MB each",
    Modules: "of the profile analyst",
    Environment: "default",
    Recording: "only debugged runs, and those that ask for it",
    End: "after 10 min without use, and at the latest 1 h after its beginning",
  });
});

test("a sandbox without files, with a network and a list of modules says so", () => {
  const modules = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
  const said = say({
    enable_file_access: false,
    enable_network_access: true,
    allowed_hosts: ["*.example.com", "10.0.0.1:5432"],
    allowed_modules: modules,
    blocked_modules: ["pickle"],
    write_policy: "capture",
    record: "always",
    cpu_percent: 100,
  });
  expect(said).toMatchObject({
    Files: "none",
    Network: "*.example.com, 10.0.0.1:5432",
    Modules: "only a, b, c, d, e, f, g, h and 2 more, without pickle",
    Writes: "wait until an admin applies them",
    Recording: "each run is recorded",
  });
  expect(said["A run"]).toContain("one CPU");
});
