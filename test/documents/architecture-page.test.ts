import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
const pathsOf = (text: string): string[] =>
  [...text.matchAll(/`((?:packages|services|deploy|test)[\w./-]*)`/g)].map(([, path = ""]) => path);

const foldersOf = (workspace: string): string[] =>
  readdirSync(join(ROOT, workspace, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

describe("docs/architecture.md", () => {
  it("names only files and folders that exist", () => {
    const paths = pathsOf(page);
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("has a row for every workspace", () => {
    const rows = pathsOf(section("Folders and imports"));
    const workspaces = ["packages", "services"].flatMap((group) =>
      readdirSync(join(ROOT, group)).map((name) => `${group}/${name}`),
    );
    expect(workspaces.filter((workspace) => !rows.includes(workspace))).toEqual([]);
  });

  it.each([
    "packages/domain",
    "packages/warehouse",
    "packages/queue",
    "services/export-api",
    "services/ops",
  ])("names the folders of %s", (workspace) => {
    const row = section("Folders and imports")
      .split("\n")
      .find((line) => line.startsWith(`| \`${workspace}\``));
    expect(foldersOf(workspace).filter((folder) => !row?.includes(`\`${folder}\``))).toEqual([]);
  });
});
