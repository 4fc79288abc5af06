export type Value = string | number | null;

/** Times are milliseconds since 1970. */
export type Column = { readonly name: string; readonly kind: "time" | "number" | "text" };

export type Answer = { readonly columns: readonly Column[]; readonly rows: readonly (readonly Value[])[] };

/** One line or one colour of bars; all series of an answer have the same times. */
export type Series = {
  readonly name: string;
  /** The column of its values, by which overrides name it. */
  readonly field: string;
  readonly points: readonly (readonly [time: number, value: number | null])[];
};

const kindOf = (type: string): Column["kind"] => {
  if (type.includes("DateTime")) return "time";
  return /Int|Float|Decimal/.test(type) ? "number" : "text";
};

const valueOf = (value: Value, kind: Column["kind"]): Value => {
  if (value === null) return null;
  if (kind === "time") return Date.parse(`${String(value).replace(" ", "T")}Z`);
  return kind === "number" ? Number(value) : String(value);
};

/** Reads what ClickHouse answers with `FORMAT JSONCompact`. */
export const readAnswer = (text: string): Answer => {
  const { meta, data } = JSON.parse(text) as {
    readonly meta: readonly { readonly name: string; readonly type: string }[];
    readonly data: readonly (readonly Value[])[];
  };
  const columns = meta.map(({ name, type }) => ({ name, kind: kindOf(type) }));
  const rows = data.map((row) => row.map((value, at) => valueOf(value, columns[at]?.kind ?? "text")));
  return { columns, rows };
};

/**
 * Makes series of rows with a time: one for each number column and each combination of texts, named by both as
 * Grafana names them.
 */
export const seriesOf = ({ columns, rows }: Answer): Series[] => {
  const timeAt = columns.findIndex(({ kind }) => kind === "time");
  if (timeAt === -1) throw new Error(`no column with times among ${columns.map(({ name }) => name).join()}`);
  const found = new Map<string, { readonly field: string; readonly values: Map<number, number | null> }>();
  const times = new Set<number>();
  for (const row of rows) {
    const time = Number(row[timeAt]);
    times.add(time);
    const labels = row.filter((_, at) => columns[at]?.kind === "text");
    for (const [at, { name: field, kind }] of columns.entries()) {
      if (kind !== "number") continue;
      const name = [field, ...labels].join(" ");
      const one = found.get(name) ?? { field, values: new Map<number, number | null>() };
      found.set(name, one);
      one.values.set(time, row[at] as number | null);
    }
  }
  const sorted = [...times].sort((a, b) => a - b);
  return [...found]
    .map(([name, { field, values }]) => ({
      name,
      field,
      points: sorted.map((time) => [time, values.get(time) ?? null] as const),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
};
