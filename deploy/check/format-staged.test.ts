import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const UGLY = "export const a   = 1\n";
const NEAT = "export const a = 1;\n";

let folder = "";
const git = (...args: string[]): string => execFileSync("git", args, { cwd: folder, encoding: "utf8" });
const write = (path: string, text: string): void => writeFileSync(join(folder, path), text);
const read = (path: string): string => readFileSync(join(folder, path), "utf8");
const commit = (...args: string[]) => {
  const { status, stderr } = spawnSync("git", ["commit", "-qm", "x", ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, stderr };
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "staged-"));
  const made = folder;
  onTestFinished(() => rmSync(made, { recursive: true }));
  for (const name of ["deploy", "node_modules", "biome.json"])
    symlinkSync(join(ROOT, name), join(folder, name));
  git("init", "-q");
  git("config", "core.hooksPath", join(ROOT, ".githooks"));
  git("config", "user.name", "x");
  git("config", "user.email", "x@example.com");
  write("kept.ts", NEAT);
  git("add", "kept.ts");
  git("commit", "-qm", "x", "--no-verify");
});

it("formats what is staged, in the commit and in the working tree", () => {
  write("kept.ts", `${UGLY}// changed\n`);
  for (const [name, text] of [
    ["new one.ts", UGLY],
    ["broken.ts", "const = ;"],
    ["page.md", UGLY],
  ] as const) {
    write(name, text);
    git("add", name);
  }
  const { status, stderr } = commit("-a");
  expect(status).toBe(0);
  expect(stderr).toContain("formatted new one.ts\n");
  expect([git("show", "HEAD:new one.ts"), read("new one.ts")]).toEqual([NEAT, NEAT]);
  expect(git("show", "HEAD:kept.ts")).toBe(`${NEAT}// changed\n`);
  expect([read("broken.ts"), read("page.md")]).toEqual(["const = ;", UGLY]);
  expect(git("status", "--porcelain", "--untracked-files=no")).toBe("");
});

it("leaves what is not staged as it is", () => {
  write("kept.ts", UGLY);
  git("add", "kept.ts");
  write("kept.ts", `${UGLY}export const b   = 2\n`);
  write("new.ts", "export const c = 3;\n");
  git("add", "new.ts");
  expect(commit()).toEqual({ status: 0, stderr: "formatted kept.ts\n" });
  expect(git("show", "HEAD:kept.ts")).toBe(NEAT);
  expect(read("kept.ts")).toBe(`${UGLY}export const b   = 2\n`);
});

it("asks to commit again when files are named", () => {
  write("kept.ts", `${UGLY}// named\n`);
  expect(commit("kept.ts").status).toBe(1);
  expect(commit("kept.ts")).toEqual({ status: 0, stderr: "" });
  expect(git("show", "HEAD:kept.ts")).toBe(`${NEAT}// named\n`);
  expect(git("status", "--porcelain", "--untracked-files=no")).toBe("");
});
