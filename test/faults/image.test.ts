import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { choosePorts, tied } from "@conversation-export/local-stack";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildImageTree, type ImageTree, readInstructions } from "../outside/image-tree.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SERVICES = ["ingest", "export-api", "jobs"] as const;

type Manifest = Partial<
  Record<"dependencies" | "devDependencies" | "optionalDependencies", Record<string, string>>
>;

const namesIn = (root: string, folder: string, ...groups: (keyof Manifest)[]): string[] => {
  const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
  return groups.flatMap((group) => Object.keys(manifest[group] ?? {}));
};

const envOf = (tree: ImageTree): Record<string, string> => ({
  ...tree.env,
  PATH: `${dirname(process.execPath)}${delimiter}${tree.env["PATH"] ?? ""}`,
});

describe("the image", () => {
  let folder = "";
  let tree: ImageTree;
  let system: System;
  const running: ChildProcess[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "image-"));
    [tree, system] = await Promise.all([buildImageTree(folder), startSystem("image")]);
  });
  afterAll(async () => {
    for (const child of running) child.kill("SIGKILL");
    await system?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is built from the manifests of all workspaces", () => {
    const copied = readInstructions()
      .filter(({ name }) => name === "COPY")
      .map(({ text }) => text.split(" ")[0]);
    const workspaces = globSync("{packages/*,services/*,deploy/local,test}/package.json", { cwd: ROOT });
    expect(copied).toEqual(expect.arrayContaining(workspaces));
  });

  it("holds what runs and nothing else", () => {
    expect(readdirSync(tree.workingFolder).toSorted()).toEqual([
      "compile-cache",
      "node_modules",
      "package.json",
      "packages",
      "services",
    ]);
    expect(globSync("{packages,services}/**/*.{test,fixture}.ts", { cwd: tree.workingFolder })).toEqual([]);
    expect(globSync("packages/warehouse/migrations/*", { cwd: tree.workingFolder })).not.toEqual([]);
  });

  it("has nothing of a base image but what Node needs, and asks for no frontend of a builder", () => {
    const dockerfile = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8");
    expect(dockerfile).not.toMatch(/^#\s*syntax\s*=/m);
    const instructions = readInstructions();
    const last = instructions.findLastIndex(({ name }) => name === "FROM");
    expect(instructions[last]?.text).toBe("scratch");
    const copied = instructions
      .slice(last)
      .filter(({ name }) => name === "COPY")
      .map(({ text }) => text.split(" ").slice(0, -1).join(" "));
    expect(copied).toEqual([
      "--from=runtime /runtime/",
      "--from=build /app/package.json",
      "--from=build /app/node_modules",
      "--from=build /app/packages",
      "--from=build /app/services",
      "--from=build /tmp/compile-cache",
    ]);
  });

  it("has packages without types, sources and maps, which no process reads", () => {
    const unread = globSync("**/node_modules/**/*.{ts,mts,cts,map}", { cwd: tree.workingFolder }).filter(
      (path) => !path.includes("@conversation-export"),
    );
    expect(unread).toEqual([]);
  });

  it("has no package that only development needs", () => {
    const needed = globSync("{packages,services}/*/package.json", { cwd: ROOT })
      .map(dirname)
      .flatMap((one) => namesIn(ROOT, one, "dependencies"));
    const packages = globSync(
      ["", "services/*/", "packages/*/"].flatMap((at) => [`${at}node_modules/*`, `${at}node_modules/@*/*`]),
      { cwd: tree.workingFolder },
    ).filter((path) => existsSync(join(tree.workingFolder, path, "package.json")));
    const installed = packages.map((path) => path.split("node_modules/")[1] ?? "");
    expect(installed).toEqual(expect.arrayContaining(needed));
    // A runtime package may need a development package.
    const neededByOthers = packages.flatMap((path) => namesIn(tree.workingFolder, path, "dependencies"));
    const forbidden = [
      ...namesIn(ROOT, ".", "devDependencies"),
      ...namesIn(ROOT, "deploy/local", "dependencies", "optionalDependencies"),
      ...namesIn(ROOT, "test", "dependencies", "devDependencies"),
    ].filter((name) => !needed.includes(name) && !neededByOthers.includes(name));
    expect(forbidden).toEqual(
      expect.arrayContaining([
        "vitest",
        "typescript",
        "@biomejs/biome",
        "@types/node",
        "@chdb/lib-linux-x64-gnu",
      ]),
    );
    expect(installed.filter((name) => forbidden.includes(name))).toEqual([]);
  });

  it("runs node itself as a user without rights", () => {
    expect(tree.entrypoint).toEqual(["node"]);
    expect(tree.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it.each(SERVICES)("has a %s that names its missing variables and ends with 1", async (service) => {
    const [program, ...args] = [...tree.entrypoint, `services/${service}/src/main.ts`];
    const ended = await promisify(execFile)(program, args, {
      cwd: tree.workingFolder,
      env: envOf(tree),
    }).catch((error: unknown) => error);
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^wrong configuration:\n(?: {2}\w+: is required.*\n)+$/),
    });
  });

  it("has export-ops, which names its missing variables and ends with 2", async () => {
    const run = (...args: string[]) =>
      promisify(execFile)("export-ops", args, { cwd: tree.workingFolder, env: envOf(tree) });
    await expect(run("migrate")).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("CLICKHOUSE_URL: is required"),
    });
  });

  it("reads what Node compiled when it was built", async () => {
    const { stdout, stderr } = await promisify(execFile)(
      "node",
      ["services/ops/src/main.ts", "help", "status"],
      {
        cwd: tree.workingFolder,
        env: { ...envOf(tree), NODE_DEBUG_NATIVE: "COMPILE_CACHE" },
        maxBuffer: 64 * 1024 * 1024,
      },
    );
    expect(stdout + stderr).toContain("Usage: export-ops status");
    expect(stdout + stderr).toMatch(/packages\/domain\/src\/index\.ts was accepted/);
  });

  it("becomes ready as each service", async () => {
    const ports = await choosePorts({ names: SERVICES, fixed: {} });
    await Promise.all(
      SERVICES.map(async (service) => {
        const [first = "", ...words] = tree.entrypoint;
        const [program, ...args] = tied([first, ...words, `services/${service}/src/main.ts`]);
        const env = {
          ...system.environment(service),
          HOST: "127.0.0.1",
          METRICS_PORT: String(ports[service]),
        };
        const child = spawn(program, args, {
          cwd: tree.workingFolder,
          env: { ...envOf(tree), ...env },
          stdio: ["ignore", "ignore", "inherit"],
        });
        running.push(child);
        await until(`${service} is ready`, 60_000, async () => {
          expect(child.exitCode).toBeNull();
          const answer = await fetch(`http://127.0.0.1:${ports[service]}/ready`).catch(() => null);
          return answer?.ok === true;
        });
        child.kill("SIGTERM");
        await until(`${service} has ended`, 30_000, () => child.exitCode !== null);
        expect(child.exitCode).toBe(0);
      }),
    );
  });
});
