import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tied } from "@conversation-export/local-stack";
import type { Manifest } from "./helm.ts";
import type { RenderedContainer } from "./rendered-env.ts";

type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;

export type Surroundings = {
  readonly manifests: readonly Manifest[];
  /** Secrets and ConfigMaps that the render only names, by name and key. */
  readonly secrets: Texts;
  readonly configMaps: Texts;
  readonly workingFolder: string;
  readonly folder: string;
  readonly imageEnv: Readonly<Record<string, string>>;
};

export type LocalContainer = {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Exit code; null: ended by a signal. */
  readonly ended: Promise<number | null>;
};

/** Starts a rendered container as a local process. @param here replaces rendered variables, such as ports */
export const startContainer = (
  container: RenderedContainer,
  around: Surroundings,
  options: { readonly args?: readonly string[]; readonly here?: Readonly<Record<string, string>> } = {},
): LocalContainer => {
  const { args = container.args, here = {} } = options;
  const folder = mkdtempSync(join(around.folder, `${container.workload.replaceAll(/\W+/g, "-")}-`));
  const files = new Map(
    Object.entries(container.files).map(([path, ref]): [string, string] => {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, textOf(around, ref.kind, ref));
      return [path, file];
    }),
  );
  const env = {
    ...Object.fromEntries(
      Object.entries(container.plain).map(([key, value]) => [key, files.get(value) ?? value]),
    ),
    ...Object.fromEntries(
      Object.entries(container.secret).map(([key, ref]) => [key, textOf(around, "Secret", ref)]),
    ),
    ...here,
  };
  const [program, ...before] = container.command;
  if (program !== "node") throw new Error(`${container.workload} starts ${program}`);
  const log = createWriteStream(join(folder, "output.log"));
  const [node, ...words] = tied([process.execPath, ...before, ...args]);
  const child = spawn(node, words, {
    cwd: around.workingFolder,
    // Nothing is inherited: the container has only rendered variables.
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...around.imageEnv, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    stream.pipe(log, { end: false });
  }
  const { promise: ended, resolve } = Promise.withResolvers<number | null>();
  child.once("close", resolve);
  return { child, output: () => output, ended };
};

const textOf = (
  { manifests, secrets, configMaps }: Surroundings,
  kind: "Secret" | "ConfigMap",
  { name, key }: { readonly name: string; readonly key: string },
): string => {
  const rendered = manifests.find((one) => one.kind === kind && one.metadata.name === name)?.data?.[key];
  if (rendered !== undefined)
    return kind === "Secret" ? Buffer.from(rendered, "base64").toString() : rendered;
  const given = (kind === "Secret" ? secrets : configMaps)[name]?.[key];
  if (given === undefined) throw new Error(`there is no ${kind} ${name} with ${key}`);
  return given;
};
