type Filling = {
  /** Milliseconds since 1970, both ends included. */
  readonly range: { readonly from: number; readonly to: number };
  readonly variables: Readonly<Record<string, readonly string[]>>;
};

const quoted = (value: string): string => `'${value.replaceAll("'", "\\'")}'`;

/** Fills macros and variables as Grafana's ClickHouse data source does; throws on any that stay. */
export const fillSql = (sql: string, { range, variables }: Filling): string => {
  const between = (column: string, bound: (ms: number) => string): string =>
    `${column} >= ${bound(range.from)} AND ${column} <= ${bound(range.to)}`;
  const valuesOf = (name: string): readonly string[] => {
    const values = variables[name];
    if (values === undefined) throw new Error(`nothing is chosen for the variable ${name}`);
    return values;
  };

  const filled = sql
    .replaceAll(/\$__timeFilter\((\w+)\)/g, (_, column: string) =>
      between(column, (ms) => `toDateTime(${Math.floor(ms / 1_000)})`),
    )
    .replaceAll(/\$__dateFilter\((\w+)\)/g, (_, column: string) =>
      between(column, (ms) => `toDate('${new Date(ms).toISOString().slice(0, 10)}')`),
    )
    .replaceAll(/\$\{(\w+):singlequote\}/g, (_, name: string) => valuesOf(name).map(quoted).join(","))
    .replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
      const [value = "", ...more] = valuesOf(name);
      if (more.length > 0) throw new Error(`the variable ${name} has several values and no format`);
      return value;
    });
  const left = /\$\{?\w+(:\w+)?\}?/.exec(filled);
  if (left !== null) throw new Error(`nothing replaces ${left[0]} in ${sql}`);
  return filled;
};
