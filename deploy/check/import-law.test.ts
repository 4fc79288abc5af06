import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkImports } from "./import-law.ts";

const SCOPE = "@conversation-export";
const WORKSPACES: Record<string, readonly string[]> = {
  "packages/domain": ["zod"],
  "packages/runtime": ["pino", "zod", "@prometheus-io/client", "@opentelemetry/api"],
  "packages/bus": ["kafkajs"],
  "packages/warehouse": ["@clickhouse/client"],
  "packages/queue": ["bullmq", "ioredis"],
  "packages/client": ["@duckdb/node-api"],
  "services/ingest": ["zod", "ioredis"],
  "services/export-api": ["fastify", "kafkajs", "@opentelemetry/api"],
  "services/ops": ["commander"],
  "deploy/local": ["ffi-rs"],
  test: ["yaml", "kafkajs"],
};
const ROOT_TOOLS = ["vitest", "fast-check", "dependency-cruiser"];

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "import-law-"));
  put(
    "package.json",
    JSON.stringify({ workspaces: Object.keys(WORKSPACES), devDependencies: versions(ROOT_TOOLS) }),
  );
  put("deploy/check/index.ts", 'export { cruise } from "dependency-cruiser";\n');
  for (const name of [...ROOT_TOOLS, "lodash", ...Object.values(WORKSPACES).flat()]) {
    put(`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
    put(`node_modules/${name}/index.js`, "");
  }
  mkdirSync(join(root, "node_modules", SCOPE));
  for (const [folder, npm] of Object.entries(WORKSPACES)) {
    const name = `${SCOPE}/${folder.replace(/.*\//, "")}`;
    put(
      `${folder}/package.json`,
      JSON.stringify({ name, exports: "./src/index.ts", dependencies: versions(npm) }),
    );
    put(`${folder}/src/index.ts`, "export const here = 1;\n");
    put(`${folder}/src/inner.ts`, "export const inner = 1;\n");
    symlinkSync(join(root, folder), join(root, "node_modules", name));
  }
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("checkImports", () => {
  it("accepts what the law allows", async () => {
    put("packages/domain/src/a.ts", `${from("zod")}${from("./inner.ts")}`);
    put("packages/domain/src/a.test.ts", `${from("vitest")}${from("node:fs")}${from("./a.ts")}`);
    put("packages/domain/src/a.fixture.ts", `${from("fast-check")}${from("./a.ts")}`);
    put(
      "packages/runtime/src/a.ts",
      `${from("pino")}${from("zod")}${from("@prometheus-io/client")}${from("@opentelemetry/api")}${from("node:fs")}`,
    );
    put("packages/bus/src/a.ts", `${from("kafkajs")}${workspace("domain")}${workspace("runtime")}`);
    put(
      "packages/warehouse/src/a.ts",
      `${from("@clickhouse/client")}${from("node:fs")}${workspace("domain")}`,
    );
    put("packages/queue/src/a.ts", `${from("bullmq")}${from("ioredis")}${workspace("runtime")}`);
    put(
      "services/ingest/src/main.ts",
      `${workspace("bus")}${workspace("warehouse")}${from("zod")}${from("node:fs")}`,
    );
    put("services/ops/src/main.ts", `${from("commander")}${workspace("queue")}${workspace("bus")}`);
    put(
      "packages/client/src/command/main.ts",
      `${from("node:fs")}${from("@duckdb/node-api")}${from("../index.ts")}`,
    );
    put("test/e2e/b.test.ts", workspace("client"));
    put("deploy/local/src/cli.ts", `${from("ffi-rs")}${from("node:fs")}${workspace("runtime")}`);
    put("test/system/a.ts", `${workspace("local")}${workspace("domain")}${from("yaml")}${from("vitest")}`);
    put(
      "test/e2e/a.test.ts",
      `${from("../system/a.ts")}${workspace("local")}${workspace("ingest")}${from("kafkajs")}`,
    );
    const { modules, dependencies, violations } = await checkImports(root);
    expect(violations).toEqual([]);
    expect(modules).toBeGreaterThan(30);
    expect(dependencies).toBeGreaterThan(30);
  });

  it.each<[rule: string, file: string, text: string]>([
    ["packages-domain-source", "packages/domain/src/a.ts", from("node:fs")],
    ["packages-domain-source", "packages/domain/src/a.ts", from("pino")],
    ["packages-domain-source", "packages/domain/src/a.ts", 'import type { X } from "pino";\n'],
    ["packages-domain-source", "packages/domain/src/a.ts", 'export const a = await import("node:fs");\n'],
    ["packages-domain-source", "packages/domain/src/a.ts", workspace("runtime")],
    ["packages-domain-source", "packages/domain/src/a.ts", from("vitest")],
    ["packages-domain-source", "packages/domain/src/a.ts", from("./b.test.ts")],
    ["packages-domain-source", "packages/domain/src/a.ts", from("./b.fixture.ts")],
    ["packages-domain-source", "packages/domain/src/a.ts", from("../../../test/src/index.ts")],
    ["packages-domain-tests", "packages/domain/src/a.test.ts", workspace("test")],
    ["packages-domain-tests", "packages/domain/src/a.test.ts", workspace("runtime")],
    ["packages-runtime-source", "packages/runtime/src/a.ts", workspace("domain")],
    ["packages-runtime-source", "packages/runtime/src/a.ts", from("kafkajs")],
    ["packages-bus-source", "packages/bus/src/a.ts", workspace("warehouse")],
    ["packages-bus-source", "packages/bus/src/a.ts", from("ioredis")],
    ["packages-bus-source", "packages/bus/src/a.ts", from("../../domain/src/inner.ts")],
    ["packages-bus-by-name", "packages/bus/src/a.ts", from("../../domain/src/index.ts")],
    ["packages-warehouse-source", "packages/warehouse/src/a.ts", workspace("bus")],
    ["packages-warehouse-source", "packages/warehouse/src/a.ts", from("bullmq")],
    ["packages-queue-source", "packages/queue/src/a.ts", workspace("warehouse")],
    ["packages-queue-source", "packages/queue/src/a.ts", from("@clickhouse/client")],
    ["packages-known", "packages/extra/src/a.ts", from("zod")],
    ["services-ingest-source", "services/ingest/src/a.ts", from("../../../packages/bus/src/inner.ts")],
    ["services-ingest-source", "services/ingest/src/a.ts", workspace("export-api")],
    ["services-ingest-source", "services/ingest/src/a.ts", from("../../ops/src/inner.ts")],
    ["services-ingest-source", "services/ingest/src/a.ts", workspace("local")],
    ["services-ingest-source", "services/ingest/src/a.ts", workspace("test")],
    ["services-ingest-source", "services/ingest/src/a.ts", from("lodash")],
    ["services-ingest-source", "services/ingest/src/a.ts", workspace("queue")],
    ["services-ingest-source", "services/ingest/src/a.ts", from("ioredis")],
    ["services-ingest-tests", "services/ingest/src/a.test.ts", workspace("queue")],
    ["services-ingest-by-name", "services/ingest/src/a.ts", from("../../../packages/bus/src/index.ts")],
    ["services-ingest-tests", "services/ingest/src/a.test.ts", workspace("export-api")],
    ["services-export-api-source", "services/export-api/src/a.ts", from("kafkajs")],
    ["services-export-api-source", "services/export-api/src/a.ts", from("@opentelemetry/api")],
    ["packages-warehouse-source", "packages/warehouse/src/a.ts", from("@opentelemetry/api")],
    ["services-ops-source", "services/ops/src/a.ts", workspace("ingest")],
    ["services-ops-source", "services/ops/src/a.ts", from("bullmq")],
    ["services-ops-source", "services/ops/src/a.ts", workspace("client")],
    ["packages-client-source", "packages/client/src/command/a.ts", workspace("domain")],
    ["client-library", "packages/client/src/a.ts", from("node:fs")],
    ["client-library", "packages/client/src/a.ts", from("@duckdb/node-api")],
    ["client-library", "packages/client/src/a.ts", from("./command/b.ts")],
    ["deploy-local-source", "deploy/local/src/a.ts", from("yaml")],
    ["deploy-local-source", "deploy/local/src/a.ts", workspace("ingest")],
    ["deploy-local-source", "deploy/local/src/a.ts", workspace("test")],
    ["deploy-check-source", "deploy/check/a.ts", workspace("domain")],
    ["test-tests", "test/e2e/a.test.ts", from("../../packages/domain/src/inner.ts")],
    ["test-tests", "test/system/a.ts", from("lodash")],
    ["test-by-name", "test/e2e/a.test.ts", from("../../packages/domain/src/index.ts")],
    ["test-source", "test/system/a.ts", from("../e2e/b.test.ts")],
    ["resolvable", "packages/domain/src/a.ts", from("./missing.ts")],
    ["no-cycles", "packages/domain/src/a.ts", from("./b.ts")],
    ["no-cycles", "packages/domain/src/a.ts", 'import type { X } from "./b.ts";\n'],
  ])("%s: %s must not: %s", async (rule, file, text) => {
    put("packages/domain/src/b.ts", from("./a.ts"));
    put("packages/domain/src/b.test.ts", "export const b = 1;\n");
    put("packages/domain/src/b.fixture.ts", "export const b = 1;\n");
    put("test/e2e/b.test.ts", "export const b = 1;\n");
    put("packages/client/src/command/b.ts", "export const b = 1;\n");
    if (!file.startsWith("packages/domain/src/a.")) put("packages/domain/src/a.ts", "export const a = 1;\n");
    else if (file.endsWith(".test.ts")) put("packages/domain/src/a.ts", "export const a = 1;\n");
    put(file, text);
    const { violations } = await checkImports(root);
    expect(violations.filter((line) => line.startsWith(`${rule}: `))).not.toEqual([]);
  });

  it("refuses to judge an empty tree", async () => {
    for (const file of globSync("{packages,services,deploy,test}/**/*.ts", { cwd: root })) {
      rmSync(join(root, file));
    }
    await expect(checkImports(root)).rejects.toThrow("0 files");
  });
});

function put(path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function from(specifier: string): string {
  return `import ${JSON.stringify(specifier)};\n`;
}

function workspace(name: string): string {
  return from(`${SCOPE}/${name}`);
}

function versions(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, "1.0.0"]));
}
