/** What an expression is asked for: the values of variables, and the step of its points. */
export type PromqlFilling = {
  readonly variables: Readonly<Record<string, string>>;
  /** seconds */
  readonly step: number;
  readonly scrapeInterval: number;
};

/** Replaces the variables of an expression, and `$__rate_interval` as Grafana does. Another one is an error. */
export const fillPromql = (expr: string, { variables, step, scrapeInterval }: PromqlFilling): string =>
  expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
    if (name === "__rate_interval") return `${Math.max(step + scrapeInterval, 4 * scrapeInterval)}s`;
    const value = variables[name];
    if (value === undefined) throw new Error(`nothing replaces $${name} in ${expr}`);
    return value;
  });
