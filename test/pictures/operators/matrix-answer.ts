import type { Answer, Value } from "../answer.ts";
import type { Matrix } from "../../outside/prometheus.ts";

export type Named = { readonly matrix: Matrix; readonly legendFormat: string };

/** Fills `{{label}}`, as Grafana does; without a format, all labels. */
const nameOf = (metric: Readonly<Record<string, string>>, format: string): string =>
  format === ""
    ? Object.entries(metric)
        .map(([label, value]) => `${label}=${value}`)
        .join(" ") || "value"
    : format.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? "");

/**
 * Makes one answer of what Prometheus says to the expressions of a panel: a column for each series. Those that share a
 * name, as when two processes tell of one partition, are numbered.
 */
export const matrixAnswer = (asked: readonly Named[]): Answer => {
  const series = asked.flatMap(({ matrix, legendFormat }) =>
    matrix.map(({ metric, values }) => ({
      name: nameOf(metric, legendFormat),
      // NaN, such as a share of nothing, is a gap.
      values: new Map<number, Value>(
        values.map(([at, value]) => [at * 1_000, Number.isFinite(Number(value)) ? Number(value) : null]),
      ),
    })),
  );
  const names = series.map(({ name }, at) => {
    const before = series.slice(0, at).filter((other) => other.name === name).length;
    return before === 0 ? name : `${name} (${before + 1})`;
  });
  const times = [...new Set(series.flatMap(({ values }) => [...values.keys()]))].sort((a, b) => a - b);
  return {
    columns: [{ name: "time", kind: "time" }, ...names.map((name) => ({ name, kind: "number" as const }))],
    rows: times.map((time) => [time, ...series.map(({ values }) => values.get(time) ?? null)]),
  };
};
