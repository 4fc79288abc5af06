import { join } from "node:path";
import { ANALYTICS_VIEWS } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { renderDbtSources, renderDictionary } from "./data-dictionary.ts";

const DOCS = join(import.meta.dirname, "../../docs");

it.each([
  ["data-dictionary.md", renderDictionary],
  ["dbt/sources.yml", renderDbtSources],
])("%s is as make generate writes it", async (name, render) => {
  await expect(render()).toMatchFileSnapshot(join(DOCS, name));
});

it("says of every column what it means, and of every view what names a row", () => {
  for (const { name, columns, key } of ANALYTICS_VIEWS) {
    const names = columns.map((column) => column.name);
    expect(new Set(names).size, name).toBe(names.length);
    expect(names, name).toEqual(expect.arrayContaining([...key]));
    for (const { comment } of columns) expect(comment.length, name).toBeGreaterThan(3);
  }
});
