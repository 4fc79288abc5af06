import {
  KIND_NAMES,
  type OwnColumn,
  ownTableOf,
  READABLE_FIRST,
  RECORD_KINDS,
} from "@conversation-export/domain";
import { describe, expect, it } from "vitest";
import { readMigrations } from "../schema/migrate.ts";
import { renderMigration } from "../schema/migration-template.ts";
import { ownEncoding } from "./own-table.ts";

const TYPES: Readonly<Record<OwnColumn<never>["type"], string>> = {
  id: "String",
  text: "String",
  label: "LowCardinality(String)",
  texts: "Array(String)",
  flag: "Nullable(Bool)",
  number: "Nullable(Float64)",
  byte: "Nullable(UInt8)",
};

const statements = (await readMigrations()).flatMap(({ template }) =>
  renderMigration(template, { cluster: null }),
);

const createdBy = (table: string): string =>
  statements.find((one) => one.includes(`CREATE TABLE IF NOT EXISTS ${table} `)) ?? "";

const createdColumns = (table: string): readonly (readonly [name: string, type: string])[] => {
  const create = createdBy(table);
  return [...create.matchAll(/^ {2}([a-z_]+) ([A-Z]\w+(?:\([^\n]*?\))?)(?=,| COMMENT| CODEC|\n)/gm)].map(
    ([, name = "", type = ""]) => [name, type] as const,
  );
};

it.each(READABLE_FIRST)("$name has a projection where its kind says so", ({
  name,
  hasProjection = false,
}) => {
  expect(createdBy(name)).not.toBe("");
  expect(/^ *PROJECTION /m.test(createdBy(name))).toBe(hasProjection);
});

describe.each(KIND_NAMES)("the own table of a %s", (kind) => {
  const created = createdColumns(ownTableOf(kind).name);

  it("is made with the columns that its rows are written with", () => {
    const names = created.map(([name]) => name);
    expect(names).toEqual([...ownEncoding(kind).columns]);
  });

  it("has the types that the kind says", () => {
    const own: readonly OwnColumn<never>[] = RECORD_KINDS[kind].form.columns;
    expect(created).toEqual(expect.arrayContaining(own.map(({ name, type }) => [name, TYPES[type]])));
  });
});
