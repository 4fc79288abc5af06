import { renderColumns } from "./print.ts";

/** Entries shown of a list; `--json` prints all. */
const MOST_ENTRIES = 20;

const words = (key: string): string => key.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const plain = (value: unknown): string => {
  if (value === null || value === undefined) return "-";
  if (typeof value === "number") return value.toLocaleString("en-US");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.length === 0 ? "-" : `(${value.map(plain).join("; ")})`;
  return isFields(value) ? inline(value) : JSON.stringify(value);
};

/** Fields on one line, without counts of 0. */
const inline = (fields: Record<string, unknown>): string => {
  const entries = Object.entries(fields);
  const told = entries.filter(([, value]) => value !== 0);
  if (told.length === 0) return entries.length === 0 ? "-" : "0";
  return told.map(([key, value]) => `${words(key)} ${plain(value)}`).join(", ");
};

const rowsOf = (name: string, value: unknown): (readonly [string, string])[] => {
  if (Array.isArray(value)) {
    if (value.length === 0) return [[name, "-"]];
    const shown = value
      .slice(0, MOST_ENTRIES)
      .map((entry: unknown, at): readonly [string, string] => [at === 0 ? name : "", plain(entry)]);
    const left = value.length - shown.length;
    return left === 0 ? shown : [...shown, ["", `and ${left} more: --json shows all`]];
  }
  if (!isFields(value)) return [[name, plain(value)]];
  const flat = Object.values(value).every((entry) => typeof entry !== "object" || entry === null);
  if (flat && name !== "") return [[name, inline(value)]];
  return Object.entries(value).flatMap(([key, entry]) => rowsOf(`${name} ${words(key)}`.trim(), entry));
};

/** Renders the result of a job, a line for each field. */
export const renderResult = (result: unknown): string => renderColumns(rowsOf("", result));
