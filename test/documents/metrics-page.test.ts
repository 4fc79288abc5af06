import { describe, expect, it } from "vitest";
import { readMetricSources } from "./metric-sources.ts";
import { readMetricsPage } from "./metrics-page.ts";
import { readQuery } from "./promql.ts";
import { readAlerts, readRules } from "./watch-files.ts";

const rows = readMetricsPage();
const sources = readMetricSources();
const ownRows = rows.filter(
  ({ name }) => !/^(process|nodejs)_/.test(name) && !["up", "kube_job_failed"].includes(name),
);
const line = ({ name, type, labels }: { name: string; type: string; labels: readonly string[] }): string =>
  `${name} ${type} ${labels.join()}`;

describe("docs/metrics.md", () => {
  it("has a line for each metric of the sources, with its type and labels, and no other", () => {
    expect(sources.length).toBeGreaterThan(40);
    expect(ownRows.map(line).sort()).toEqual(sources.map(line).sort());
  });

  it("gives every metric of ours the prefix conversation_export_", () => {
    expect(
      sources.map(({ name }) => name).filter((name) => !/^conversation_export_[a-z]/.test(name)),
    ).toEqual([]);
  });

  it("says something about each", () => {
    expect(rows.filter(({ meaning }) => meaning.length < 5)).toEqual([]);
    expect(rows.filter(({ services, name }) => services.length === 0 && !/^(up|kube_)/.test(name))).toEqual(
      [],
    );
  });

  it("names with each metric the alerts that look at it", () => {
    const recorded = new Map(
      readRules().flatMap(({ record, expr }) => (record === undefined ? [] : [[record, expr] as const])),
    );
    /** Through recorded series. */
    const metricsOf = (expr: string): string[] =>
      readQuery(expr).selectors.flatMap(({ metric }) => {
        const behind = recorded.get(metric);
        return behind === undefined ? [metric.replace(/_(bucket|sum|count)$/, "")] : metricsOf(behind);
      });
    const expected = new Set(
      readAlerts().flatMap(({ alert, expr }) => metricsOf(expr).map((metric) => `${metric}: ${alert}`)),
    );
    const reported = rows.flatMap(({ name, alerts }) => alerts.map((alert) => `${name}: ${alert}`));
    expect(reported.sort()).toEqual([...expected].sort());
  });
});
