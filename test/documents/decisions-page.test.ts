import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const FOLDER = join(import.meta.dirname, "../../docs/decisions");

it("docs/decisions/README.md has a line for each decision, as make generate writes it", async () => {
  const lines = globSync("0*.md", { cwd: FOLDER })
    .sort()
    .map((name) => `- [${readFileSync(join(FOLDER, name), "utf8").split("\n", 1)[0]?.slice(2)}](${name})`);
  const page = [
    "# Decisions",
    "Context, decision and consequences of what is hard to take back.",
    lines.join("\n"),
  ];
  await expect(`${page.join("\n\n")}\n`).toMatchFileSnapshot(join(FOLDER, "README.md"));
});
