import { defineConfig } from "vitest/config";

// Times are shown in the zone of the browser. The tests have one with summer time, so that a mistake is seen.
process.env["TZ"] = "Europe/Berlin";

export default defineConfig({
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    // A test that needs elements asks for happy-dom in its first line.
    environment: "node",
    setupFiles: ["src/testing/browser.ts"],
    environmentOptions: { happyDOM: { url: "http://glasshouse.test/ui/" } },
    // The files of a thread share their modules, which takes half the time. A test that changes a module, or the
    // address, puts it back.
    pool: "threads",
    isolate: false,
    restoreMocks: true,
    unstubGlobals: true,
    cache: false, // node_modules is a folder that other checkouts share
  },
});
