import { ANALYTICS_VIEWS, analyticsDatabase } from "@conversation-export/warehouse";
import type { Warehouse } from "./warehouse.ts";

export const VIEWS = analyticsDatabase("conversation_export");

export type Row = Readonly<Record<string, unknown>>;

const JSON_TEXT: ReadonlySet<string> = new Set([
  "csat",
  "metavariables",
  "variables",
  "message_data",
  "metadata",
  "system_properties",
]);

const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** Numbers too large for ClickHouse are texts in a view. */
const LARGE = /^-?(?:\d{19,}(?:\.\d+)?(?:e[+-]?\d+)?|\d+(?:\.\d+)?e[+-]?\d{3,})$/i;
const printed = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) =>
    typeof one === "string" && LARGE.test(one) ? Number(one) : one,
  );

const comparable = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (value === "" || value === null) return [name, null];
      if (JSON_TEXT.has(name)) return [name, printed(typeof value === "string" ? JSON.parse(value) : value)];
      return [name, typeof value === "string" && DATE.test(value) ? value.replace("Z", "+00:00") : value];
    }),
  );

export const readView = async (
  warehouse: Pick<Warehouse, "sql">,
  view: string,
  columns = "*",
): Promise<Row[]> => {
  const rows = await warehouse.sql(
    `SELECT ${columns} FROM ${VIEWS}.${view} SETTINGS date_time_output_format = 'iso',
      output_format_json_quote_64bit_integers = 0 FORMAT JSONEachRow`,
    "analyst",
  );
  return rows
    .split("\n")
    .filter(Boolean)
    .map((line) => comparable(JSON.parse(line) as Row));
};

type Public = Readonly<Record<string, unknown>>;
type WithScore = { readonly score?: unknown } | null;
type Typed = { readonly _type?: unknown } | null;

const namesOf = (view: string): readonly string[] =>
  ANALYTICS_VIEWS.find(({ name }) => name === view)?.columns.map(({ name }) => name) ?? [];

export const expectedRow = (view: string, clientId: string, record: Public): Row => {
  const { profile, handoffs: _, ...fields } = record as Public & { readonly profile?: Public };
  const score = (record["csat"] as WithScore)?.score;
  const type = (record["message_data"] as Typed)?._type;
  const { review } = record;
  const known: Row = {
    ...fields,
    ...profile,
    client_id: clientId,
    [view === "messages" ? "message_id" : "conversation_id"]: record["_id"],
    ...(view === "messages" ? { conversation_id: record["conversation_id"] } : {}),
    csat_score: typeof score === "number" ? score : null,
    message_type: typeof type === "string" ? type : null,
    review: typeof review === "number" && review >= 0 && review <= 255 ? review : null,
  };
  const names = namesOf(view).filter((name) => name !== "record_last_updated");
  return comparable(Object.fromEntries(names.map((name) => [name, known[name] ?? null])));
};
