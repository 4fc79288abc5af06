import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

const pathOf = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href);

/** `body` may use `part(name, start, stop)`, `hang` and `run`. */
const startProcess = (body: string) => {
  const source = `
    import { createLogger } from ${pathOf("./logger.ts")};
    import { run as runParts } from ${pathOf("./run.ts")};
    const log = createLogger({ service: "test", level: "info" });
    const say = (word) => process.stdout.write(word + "\\n");
    const hang = () => new Promise(() => {});
    setInterval(() => {}, 1000);
    // Ends with the test, however that ends.
    process.stdin.on("end", () => process.exit()).resume();
    const part = (name, start, stop) => ({
      name,
      start: async () => { say("start " + name); await start?.(); },
      stop: async () => { say("stop " + name); await stop?.(); },
    });
    const run = (parts, deadlineMs = 5000) => runParts({ log, parts, deadlineMs });
    ${body}
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk;
  });
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    exitCode: async () => (await exited)[0],
    until: async (word: string) => {
      while (!output.includes(word)) await once(child.stdout, "data");
    },
    steps: () => output.split("\n").filter((line) => /^(start|stop) /.test(line)),
    output: () => output,
    errors: () => errors,
  };
};

it("starts in order, stops in reverse on SIGTERM and exits 0", async () => {
  const child = startProcess(`run([part("a"), part("b")]);`);
  await child.until('"started"');
  child.kill("SIGTERM");
  expect(await child.exitCode()).toBe(0);
  expect(child.steps()).toEqual(["start a", "start b", "stop b", "stop a"]);
});

it("stops what was started and exits 1 when a start fails", async () => {
  const child = startProcess(
    `run([part("a"), part("b", () => { throw new Error("no port"); }), part("c")]);`,
  );
  expect(await child.exitCode()).toBe(1);
  expect(child.steps()).toEqual(["start a", "start b", "stop b", "stop a"]);
  expect(child.output()).toContain("no port");
});

it("stops and exits 1 after fatal, and after an error that nobody caught", async () => {
  const fatal = startProcess(`run([part("a")]).fatal(new Error("bug one"));`);
  expect(await fatal.exitCode()).toBe(1);
  expect(fatal.steps()).toEqual(["start a", "stop a"]);
  const uncaught = startProcess(`run([part("a")]); Promise.reject(new Error("bug two"));`);
  expect(await uncaught.exitCode()).toBe(1);
  expect(uncaught.steps()).toEqual(["start a", "stop a"]);
  expect(uncaught.output()).toContain("bug two");
});

it("logs what Node and libraries warn of as lines like all others", async () => {
  const child = startProcess(`run([part("a")]); setTimeout(() => {}, -5);`);
  await child.until("warning of Node");
  const line =
    child
      .output()
      .split("\n")
      .find((one) => one.includes("warning of Node")) ?? "";
  expect(JSON.parse(line)).toMatchObject({
    level: "warn",
    service: "test",
    err: { message: expect.stringContaining("-5"), stack: expect.stringContaining("TimeoutNegativeWarning") },
  });
  expect(child.errors()).toBe("");
});

it("logs nothing of a warning but its words", async () => {
  const child = startProcess(
    `run([part("a")]); process.emitWarning(Object.assign(new Error("loud"), { emitter: { options: { word: "x1y2" } } }));`,
  );
  await child.until("warning of Node");
  expect(child.output()).toContain("loud");
  expect(child.output()).not.toContain("x1y2");
});

it("exits 1 when the deadline passes and names the part that hung", async () => {
  const child = startProcess(`run([part("a"), part("b", undefined, hang)], 100);`);
  await child.until('"started"');
  child.kill("SIGINT");
  expect(await child.exitCode()).toBe(1);
  expect(child.output()).toContain('"part":"b"');
  expect(child.steps()).not.toContain("stop a");
});

it("stops although a start is still waiting", async () => {
  const child = startProcess(`run([part("a"), part("b", hang), part("c")]);`);
  await child.until("start b");
  child.kill("SIGTERM");
  expect(await child.exitCode()).toBe(0);
  expect(child.steps()).toEqual(["start a", "start b", "stop b", "stop a"]);
});

it("goes on stopping when one part fails to stop, and exits 1", async () => {
  const child = startProcess(`run([part("a"), part("b", undefined, () => { throw new Error("stuck"); })]);`);
  await child.until('"started"');
  child.kill("SIGTERM");
  expect(await child.exitCode()).toBe(1);
  expect(child.steps()).toContain("stop a");
});

it("exits at once on a second signal", async () => {
  const child = startProcess(`run([part("a", undefined, hang)], 60_000);`);
  await child.until('"started"');
  child.kill("SIGTERM");
  await child.until("stop a");
  child.kill("SIGTERM");
  expect(await child.exitCode()).toBe(1);
});
