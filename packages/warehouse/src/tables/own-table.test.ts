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

const COLUMN = String.raw`([a-z_]+) ([A-Z]\w+(?:\([^\n]*?\))?)(?=,| COMMENT| CODEC| AFTER|\n)`;
const IN_TABLE = new RegExp(`^ {2}${COLUMN}`, "gm");

/** Of the CREATE and of later ALTERs. */
const columnsIn = (table: string): readonly (readonly [name: string, type: string])[] => {
  const added = new RegExp(`^ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${COLUMN}`);
  return [
    ...createdBy(table).matchAll(IN_TABLE),
    ...statements.flatMap((one) => [added.exec(`${one}\n`) ?? []]),
  ].flatMap(([, name, type]) => (name === undefined || type === undefined ? [] : [[name, type] as const]));
};

it.each(READABLE_FIRST)("$name has a projection where its kind says so", ({
  name,
  hasProjection = false,
}) => {
  expect(createdBy(name)).not.toBe("");
  expect(/^ *PROJECTION /m.test(createdBy(name))).toBe(hasProjection);
});

describe.each(KIND_NAMES)("the own table of a %s", (kind) => {
  const made = columnsIn(ownTableOf(kind).name);

  it("has the columns that its rows are written with", () => {
    const names = made.map(([name]) => name);
    expect(names.toSorted()).toEqual(ownEncoding(kind).columns.toSorted());
  });

  it("has the types that the kind says", () => {
    const own: readonly OwnColumn<never>[] = RECORD_KINDS[kind].form.columns;
    expect(made).toEqual(expect.arrayContaining(own.map(({ name, type }) => [name, TYPES[type]])));
  });
});
