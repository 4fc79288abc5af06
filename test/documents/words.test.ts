import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { RETIRED_WORDS } from "./retired-words.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TEXTS = [
  "*.ts",
  "*.md",
  "*.json",
  "*.yaml",
  "*.yml",
  "*.sql",
  "*.sh",
  "*.xml",
  "*.toml",
  "*.tpl",
  "Makefile",
];
const OMITTED = ["docs/decisions", "CHANGELOG.md", "package-lock.json", "test/documents/retired-words.ts"];

const filesOf = (): string[] =>
  execFileSync("git", ["ls-files", "-z", "--", ...TEXTS, ...OMITTED.map((path) => `:!${path}`)], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .split("\0")
    .filter((path) => path !== "");

const countOf = (text: string, words: RegExp): number => text.match(new RegExp(words, "gi"))?.length ?? 0;

it("no file has a retired word more often than its exceptions allow", () => {
  const texts = filesOf().map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
  const surplus = RETIRED_WORDS.flatMap(({ words, better, allowed = {} }) => {
    const found = new Map<string, number>();
    for (const { path, text } of texts) {
      const count = countOf(text, words) + countOf(path, words);
      const place = Object.keys(allowed).find((prefix) => path.startsWith(prefix)) ?? path;
      if (count > 0) found.set(place, (found.get(place) ?? 0) + count);
    }
    return [...found]
      .filter(([place, count]) => count > (allowed[place] ?? 0))
      .map(
        ([place, count]) =>
          `${place}: ${words.source} ${count} times, ${allowed[place] ?? 0} allowed; write: ${better}`,
      );
  });
  expect(surplus).toEqual([]);
});
