import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@conversation-export/runtime";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createTestDeps } from "./commands/command-deps.fixture.ts";
import { createProgram } from "./program.ts";

const ROOT = join(import.meta.dirname, "../../..");
const VARIABLES = ["CLICKHOUSE_URL", "KAFKA_BROKERS", "REDIS_URL", "CURSOR_SECRET", "SUPPRESSION_SECRET"];

const commandsOf = (text: string): string[] => {
  const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].flatMap(([, body = ""]) =>
    body.split("\n"),
  );
  const inline = [...text.matchAll(/`(export-ops [^`]+)`/g)].map(([, command = ""]) => command);
  return [...blocks, ...inline]
    .map((line) =>
      line
        .replace(/ +(#|\||>) .*$/, "")
        .trim()
        .replace(/^npx /, ""),
    )
    .filter((line) => line.startsWith("export-ops "));
};

const wordsOf = (command: string): string[] =>
  [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
    .map(([, single, double, bare]) => single ?? double ?? bare ?? "")
    .slice(1);

const commands = new Map<string, string>();
const PAGES =
  "docs/{runbooks/*,access,clickhouse,command-line,jobs,logs,metrics,monitor,scaling,tls-and-tokens}.md";
for (const file of globSync(PAGES, { cwd: ROOT }).sort()) {
  for (const command of commandsOf(readFileSync(join(ROOT, file), "utf8"))) commands.set(command, file);
}
// Another test compares its files.
commands.delete("export-ops schemas --out docs/schemas");

beforeEach(() => {
  for (const name of VARIABLES) vi.stubEnv(name, "");
});
afterEach(() => vi.unstubAllEnvs());

it("there are commands in the runbooks", () => {
  expect(commands.size).toBeGreaterThan(30);
});

// A correct command asks for variables.
it.each([...commands])("%s (%s)", async (command) => {
  const { err, deps } = createTestDeps();
  const program = await createProgram({
    ...deps,
    catchInterrupt: () => ({ signal: AbortSignal.abort(), release: () => undefined }),
    setExitCode: () => undefined,
  });
  const ended = program.parseAsync(wordsOf(command), { from: "user" }).then(
    () => "done",
    (error: unknown) => (error instanceof ConfigError ? "asks for variables" : [error, ...err]),
  );
  expect(["done", "asks for variables"]).toContain(await ended);
});

it("each command of kubectl in the runbooks has one for a machine without Kubernetes", () => {
  const pages = globSync("docs/runbooks/*.md", { cwd: ROOT }).map((file) =>
    readFileSync(join(ROOT, file), "utf8"),
  );
  const given = pages.flatMap((text) =>
    [...text.matchAll(/kubectl -n "\$NS" (get|rollout|[a-z-]+)(?: ([a-z]+))?/g)].map(
      ([, verb = "", what = ""]) => ({
        verb,
        what,
      }),
    ),
  );
  expect(given.length).toBeGreaterThan(50);
  const readme = readFileSync(join(ROOT, "docs/runbooks/README.md"), "utf8");
  const table = /^### Without Kubernetes$[^]*?^Logs are/m.exec(readme)?.[0] ?? "";
  const named = [...table.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell]) => cell).join(" ");
  // Jobs of the cluster itself have none.
  const missing = given.filter(({ verb, what }) => !named.includes(`\`${verb}`) && !what.startsWith("job"));
  expect(missing).toEqual([]);
  expect(readFileSync(join(ROOT, "docs/runbooks/ComponentDown.md"), "utf8")).toContain("Without Kubernetes:");
});
