import { renderColumns } from "./print.ts";

/** Of a list; `--json` prints all. */
const MOST_ENTRIES = 20;

const words = (key: string): string => key.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();

const WOULD: Readonly<Record<string, string>> = {
  replayed: "would replay",
  deleted: "would delete",
  inserted: "would insert",
  rowsDropped: "would drop rows",
};

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Label = (key: string, within?: string) => string;

const asDone: Label = (key, within = "") => `${within} ${words(key)}`.trim();
const asDryRun: Label = (key, within = "") => {
  const would = WOULD[key];
  return would === undefined ? asDone(key, within) : `${would} ${within}`.trim();
};

const isDryRun = (result: unknown): boolean =>
  isFields(result) && (result["dryRun"] === true || isDryRun(result["again"]));

const plain = (value: unknown, label: Label): string => {
  if (value === null || value === undefined) return "-";
  if (typeof value === "number") return value.toLocaleString("en-US");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (Array.isArray(value))
    return value.length === 0 ? "-" : `(${value.map((entry) => plain(entry, label)).join("; ")})`;
  return isFields(value) ? inline(value, label) : JSON.stringify(value);
};

/** Without counts of 0. */
const inline = (fields: Record<string, unknown>, label: Label): string => {
  const entries = Object.entries(fields);
  const reported = entries.filter(([, value]) => value !== 0);
  if (reported.length === 0) return entries.length === 0 ? "-" : "0";
  return reported.map(([key, value]) => `${label(key)} ${plain(value, label)}`).join(", ");
};

const rowsOf = (name: string, value: unknown, label: Label): (readonly [string, string])[] => {
  if (Array.isArray(value)) {
    if (value.length === 0) return [[name, "-"]];
    const shown = value
      .slice(0, MOST_ENTRIES)
      .map((entry: unknown, at): readonly [string, string] => [at === 0 ? name : "", plain(entry, label)]);
    const left = value.length - shown.length;
    return left === 0 ? shown : [...shown, ["", `and ${left} more: --json shows all`]];
  }
  if (!isFields(value)) return [[name, plain(value, label)]];
  const flat = Object.values(value).every((entry) => typeof entry !== "object" || entry === null);
  if (flat && name !== "") return [[name, inline(value, label)]];
  return Object.entries(value).flatMap(([key, entry]) => rowsOf(label(key, name), entry, label));
};

export const renderResult = (result: unknown): string =>
  renderColumns(rowsOf("", result, isDryRun(result) ? asDryRun : asDone));
