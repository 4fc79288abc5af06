import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

// Pre-commit hook; leaves working copies with further changes as they are.
const FORMATTED = ["*.ts", "*.json", "*.cjs"];

const git = (args: readonly string[], input = ""): string =>
  execFileSync("git", args, { encoding: "utf8", input, maxBuffer: 256 * 1024 * 1024 });

const textOf = (path: string): string | undefined =>
  lstatSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path, "utf8") : undefined;

const formatIn = (folder: string): string[] => {
  const names = git(["diff", "--cached", "--name-only", "--diff-filter=d", "-z", "--", ...FORMATTED]);
  git(["checkout-index", `--prefix=${folder}/`, "-z", "--stdin"], names);
  copyFileSync("biome.json", join(folder, "biome.json"));
  const files = names.split("\0").filter((path) => textOf(join(folder, path)) !== undefined);
  const before = new Map(files.map((path) => [path, textOf(join(folder, path))]));
  if (files.length > 0)
    spawnSync("biome", ["format", "--write", "."], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  return files.filter((path) => path !== "biome.json" && textOf(join(folder, path)) !== before.get(path));
};

const stage = (path: string, text: string): void => {
  const [mode = ""] = git(["ls-files", "--stage", "--", path]).split(" ");
  const blob = git(["hash-object", "-w", "--stdin", "--no-filters"], text).trim();
  git(["update-index", "--cacheinfo", `${mode},${blob},${path}`]);
};

const folder = mkdtempSync(join(tmpdir(), "format-staged-"));
try {
  const changed = formatIn(folder);
  // `git commit FILE` restores the old index, so staging here would be lost.
  const isPartial = basename(process.env["GIT_INDEX_FILE"] ?? "").startsWith("next-index");
  for (const path of changed) {
    const text = textOf(join(folder, path)) ?? "";
    if (textOf(path) === git(["show", `:${path}`])) writeFileSync(path, text);
    if (!isPartial) stage(path, text);
    console.error(`formatted ${path}`);
  }
  if (isPartial && changed.length > 0) {
    console.error("Commit again: a commit of named files takes up no change of this hook.");
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
