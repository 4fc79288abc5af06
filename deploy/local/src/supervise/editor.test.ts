import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../paths.ts";
import { services } from "./services.ts";

const read = (path: string): string => readFileSync(join(projectFolder, path), "utf8");

test("VS Code attaches to each service at its port, after the signal that opens it", () => {
  const { configurations } = JSON.parse(read(".vscode/launch.json")) as {
    configurations: { request: string; port?: number; preLaunchTask?: string }[];
  };
  const { tasks } = JSON.parse(read(".vscode/tasks.json")) as { tasks: { label: string; command: string }[] };
  const attached = configurations
    .filter(({ request }) => request === "attach")
    .map(({ port, preLaunchTask }) => [port, tasks.find(({ label }) => label === preLaunchTask)?.command]);
  expect(attached).toEqual(
    services.map(({ name, inspectPort }) => [inspectPort, `kill -USR1 $(cat .local/${name}.pid)`]),
  );
});

test(".nvmrc names the Node of package.json", () => {
  const { devDependencies } = JSON.parse(read("package.json")) as {
    devDependencies: Record<string, string>;
  };
  expect(devDependencies["node"]).toMatch(new RegExp(`^${read(".nvmrc").trim()}\\.`));
});
