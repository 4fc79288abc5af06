import { execFile } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Other paths are the base image's. */
const OWN_FOLDERS = /(?<=^|[\s=:])\/(?=(?:app|tmp)(?:\/|$))/gm;

/** This machine's Node stands for that of this stage. */
const BASE_STAGE = "runtime";

export type ImageTree = {
  readonly folder: string;
  readonly workingFolder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly user: string;
};

type Instruction = { readonly name: string; readonly text: string };

export const readInstructions = (): Instruction[] =>
  readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name = "", text = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
      return { name, text };
    });

const patternOf = (glob: string): RegExp => {
  const parts = glob.split(/(\*\*\/|\*)/).map((part) => {
    if (part === "**/") return "(?:.*/)?";
    return part === "*" ? "[^/]*" : part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("")}(?:/.*)?$`);
};

/** The last matching line of `.dockerignore` decides. */
const createContext = (): ((path: string) => boolean) => {
  const rules = readFileSync(join(ROOT, ".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ kept: line.startsWith("!"), pattern: patternOf(line.replace(/^!/, "")) }));
  return (path) => rules.findLast(({ pattern }) => pattern.test(path))?.kept ?? true;
};

/** Without Docker; one folder a stage. */
export const buildImageTree = async (folder: string): Promise<ImageTree> => {
  const inContext = createContext();
  const stages: { name: string; root: string; work: string; env: Record<string, string> }[] = [];
  let entrypoint: string[] = [];
  let user = "root";
  for (const { name, text } of readInstructions()) {
    if (name === "FROM") {
      const stage = / AS (\w+)$/.exec(text)?.[1] ?? "image";
      const root = join(folder, stage);
      mkdirSync(join(root, "tmp"), { recursive: true });
      stages.push({ name: stage, root, work: root, env: {} });
      user = "root";
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) continue;
    const moved = (of: string, root = stage.root): string => of.replaceAll(OWN_FOLDERS, `${root}/`);
    switch (name) {
      case "WORKDIR":
        stage.work = moved(text);
        mkdirSync(stage.work, { recursive: true });
        break;
      case "ENV":
        for (const [, key = "", value = ""] of text.matchAll(/(\w+)=(\S*)/g)) stage.env[key] = moved(value);
        break;
      case "COPY": {
        const [, from, paths = ""] = /^(?:--from=(\w+) )?(.*)$/.exec(text) ?? [];
        if (from === BASE_STAGE) break;
        const words = paths.split(" ");
        const to = words.pop() ?? "";
        const source = stages.find((one) => one.name === from);
        for (const word of words) {
          const path = source === undefined ? join(ROOT, word) : moved(word, source.root);
          const isFolder = statSync(path).isDirectory();
          const target = join(stage.work, isFolder ? to : posix.join(to, posix.basename(word)));
          mkdirSync(dirname(target), { recursive: true });
          cpSync(path, target, {
            recursive: true,
            verbatimSymlinks: true,
            filter: (each) => source !== undefined || inContext(relative(ROOT, each)) || holdsKept(each),
          });
        }
        break;
      }
      case "RUN":
        if (stage.name !== BASE_STAGE) await runLine(moved(text), stage);
        break;
      case "USER":
        user = text;
        break;
      case "ENTRYPOINT":
        entrypoint = JSON.parse(text) as string[];
        break;
      default:
    }
  }
  const image = stages.at(-1);
  if (image === undefined) throw new Error("deploy/Dockerfile has no stage");
  return { folder: image.root, workingFolder: image.work, env: image.env, entrypoint, user };

  /** It may hold files that are kept. */
  function holdsKept(path: string): boolean {
    return (
      statSync(path).isDirectory() &&
      !path.endsWith("node_modules") &&
      globSync("**", { cwd: path }).some((each) => inContext(relative(ROOT, join(path, each))))
    );
  }
};

const runLine = async (line: string, stage: { work: string; env: Record<string, string> }): Promise<void> => {
  const machine = process.env["PATH"] ?? "";
  await promisify(execFile)("sh", ["-c", line], {
    cwd: stage.work,
    env: {
      HOME: process.env["HOME"],
      PATH: machine,
      npm_config_prefer_offline: "true",
      npm_config_update_notifier: "false",
      ...stage.env,
    },
  });
};
