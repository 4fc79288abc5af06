import { FIXED_SETTINGS } from "./fixed-settings.ts";

/** Per user, so that others have the rest. `lower`: a query may ask for less. */
export const VIEW_LIMITS = {
  /** Seconds. */
  max_execution_time: { most: 600, lower: true },
  max_threads: { most: 2, lower: true },
  /** Bytes, here and below. */
  max_memory_usage: { most: 2_147_483_648, lower: true },
  max_memory_usage_for_user: { most: 4_294_967_296, lower: false },
  max_temporary_data_on_disk_size_for_user: { most: 4_294_967_296, lower: false },
  max_concurrent_queries_for_user: { most: 20, lower: false },
} as const satisfies Readonly<Record<string, { readonly most: number; readonly lower: boolean }>>;

/** Queries could be evaluated on rows that a view leaves out. */
export const UNOPTIMIZED = "query_plan_enable_optimizations";

/** `value` null: the default, empty. `const`: no query changes it; `most`: none raises it. */
type ProfileSetting = {
  readonly name: string;
  readonly value: string | null;
  readonly bound: "const" | "most" | "none";
};

const fixed = (): ProfileSetting[] =>
  Object.entries(FIXED_SETTINGS).map(([name, value]) => ({ name, value, bound: "const" }));

const limits = (mayLower: boolean): ProfileSetting[] =>
  Object.entries(VIEW_LIMITS).map(([name, { most, lower }]) => ({
    name,
    value: String(most),
    bound: mayLower && lower ? "most" : "const",
  }));

export type ViewReader = "analyst" | "client";

/** Tools of analysts may send settings, but none that shows or takes more. */
export const viewProfile = (reader: ViewReader): readonly ProfileSetting[] =>
  reader === "analyst"
    ? [{ name: "readonly", value: "2", bound: "none" }, ...limits(true), ...fixed()]
    : [
        { name: "readonly", value: "1", bound: "none" },
        { name: UNOPTIMIZED, value: "0", bound: "const" },
        ...limits(false),
        ...fixed(),
      ];

const quoted = (value: string): string => (/^\d+$/.test(value) ? value : `'${value}'`);

export const viewProfileSql = (reader: ViewReader): string =>
  viewProfile(reader)
    .map(({ name, value, bound }) => {
      const set = value === null ? "" : ` = ${quoted(value)}`;
      const bounds = { const: " CONST", most: ` MIN 1 MAX ${value ?? ""}`, none: "" }[bound];
      return `  ${name}${set}${bounds}`;
    })
    .join(",\n");

export const viewProfileXml = (reader: ViewReader): string => {
  const settings = viewProfile(reader);
  const values = settings.flatMap(({ name, value }) =>
    value === null ? [] : [`<${name}>${value}</${name}>`],
  );
  const constraints = settings.flatMap(({ name, value, bound }) => {
    if (bound === "none") return [];
    // From 1, since 0 is no limit.
    const bounds = bound === "const" ? "<const/>" : `<min>1</min><max>${value ?? ""}</max>`;
    return [`<${name}>${bounds}</${name}>`];
  });
  const lines = [...values, "<constraints>", ...constraints.map((line) => `  ${line}`), "</constraints>"];
  return `<${reader}>\n${lines.map((line) => `      ${line}`).join("\n")}\n    </${reader}>`;
};
