import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const targets = [...read("Makefile").matchAll(/^([a-z0-9-]+):/gm)].map(([, name = ""]) => name);

it("help has every target, in three groups", () => {
  const help = execFileSync("make", ["help"], { cwd: ROOT, encoding: "utf8" });
  expect(help.match(/^\w+$/gm)).toEqual(["Everyday", "Verify", "Release"]);
  const listed = [...help.matchAll(/^ {2}([a-z0-9-]+) {2,}\S/gm)].map(([, name = ""]) => name);
  expect(listed.toSorted()).toEqual(targets.filter((name) => name !== "tools").toSorted());
});

it("pages name targets that exist", () => {
  const pages = ["*.md", "docs/**/*.md"].flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  const named = pages
    .filter((page) => page !== "CHANGELOG.md")
    .flatMap((page) =>
      [...read(page).matchAll(/(?:^|`)make (?:-s )?([a-z0-9-]+)/gm)].map(
        ([, name = ""]) => `${page}: ${name}`,
      ),
    );
  expect(named).not.toEqual([]);
  expect(named.filter((one) => !targets.includes(one.split(": ")[1] ?? ""))).toEqual([]);
});
