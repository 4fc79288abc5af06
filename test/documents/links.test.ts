import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const pages = globSync(["*.md", "docs/**/*.md", "test/README.md"], { cwd: ROOT }).sort();
const LINK = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g;

/** As GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

const anchorsOf = (file: string): Set<string> =>
  new Set(
    [...readFileSync(file, "utf8").matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading)),
  );

it.each(pages)("the links of %s lead to files and headings that exist", (page) => {
  const broken = [...readFileSync(join(ROOT, page), "utf8").matchAll(LINK)]
    .map(([, path = "", anchor]) => ({ file: path === "" ? page : join(dirname(page), path), anchor }))
    .filter(({ file, anchor }) => {
      if (!existsSync(join(ROOT, file))) return true;
      return anchor !== undefined && file.endsWith(".md") && !anchorsOf(join(ROOT, file)).has(anchor);
    });
  expect(broken).toEqual([]);
});

it("docs/README.md leads to every page of docs", () => {
  const index = readFileSync(join(ROOT, "docs/README.md"), "utf8");
  const own = globSync("*.md", { cwd: join(ROOT, "docs") }).filter((name) => name !== "README.md");
  expect(own.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});
