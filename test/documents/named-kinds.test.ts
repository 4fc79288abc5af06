import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KIND_NAMES, LIST_NAMES } from "@conversation-export/domain";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const KINDS = "packages/domain/src/kinds/";

type Exception = { readonly count: number; readonly reason: string };

/** By the start of a path. */
const ALLOWED: Readonly<Record<string, Exception>> = {
  "packages/client/src/": { count: 3, reason: "its own table of lists" },
  "packages/warehouse/src/analytics/": { count: 2, reason: "the days of conversations" },
  "packages/warehouse/src/pages/sql/": { count: 3, reason: "each list is of one kind" },
  "packages/warehouse/src/upkeep/compaction/": { count: 3, reason: "the update index of conversations" },
  "services/jobs/src/compaction/": { count: 1, reason: "the update index of conversations" },
  "services/export-api/src/http/api-error.ts": { count: 3, reason: "the message of an error" },
  "services/jobs/src/sources/file-source.ts": { count: 1, reason: "a message of the bus" },
  "services/ops/src/setup/async-api.ts": { count: 1, reason: "the messages of AsyncAPI" },
};

const NAMES = [...new Set([...KIND_NAMES, ...LIST_NAMES])];
// Also in SQL.
const LITERAL = new RegExp(`(["'])(?:${NAMES.join("|")})\\1`, "g");
const namedIn = (text: string): string[] => text.match(LITERAL) ?? [];

const placeOf = (file: string): string =>
  Object.keys(ALLOWED).find((start) => file.startsWith(start)) ?? file;

it("finds a kind and its list in code and in SQL", () => {
  const named = `if (kind === "message") return; f(\`kind = 'end_user' AND name = "conversations"\`);`;
  expect(namedIn(named)).toEqual(['"message"', "'end_user'", '"conversations"']);
  expect(namedIn('RECORD_KINDS[kind].list; "a message"; end_users')).toEqual([]);
});

it("no mechanism names a kind of record: it reads them from the kinds", () => {
  const found: Record<string, number> = {};
  for (const file of globSync("{packages/*,services/*,deploy/local}/src/**/*.ts", { cwd: ROOT })) {
    if (/\.(test|fixture)\.ts$/.test(file) || file.startsWith(KINDS)) continue;
    const { length } = namedIn(readFileSync(join(ROOT, file), "utf8"));
    if (length > 0) found[placeOf(file)] = (found[placeOf(file)] ?? 0) + length;
  }
  const allowed = Object.entries(ALLOWED).map(([start, { count }]) => [start, count]);
  expect(found).toEqual(Object.fromEntries(allowed));
});
