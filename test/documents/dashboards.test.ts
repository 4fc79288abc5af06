import { describe, expect, it } from "vitest";
import { readMetricsPage } from "./metrics-page.ts";
import { seriesNames } from "./exposition.ts";
import { readQuery } from "./promql.ts";
import { dashboardQueries, panelsOf, readDashboards } from "./watch-files.ts";

const DATASOURCE = { type: "prometheus", uid: "${datasource}" };
const TARGET_LABELS = ["namespace", "job", "pod"];

const dashboards = readDashboards();
const known = new Map(
  readMetricsPage().flatMap((row) =>
    seriesNames(row).map((name) => [name, name.endsWith("_bucket") ? [...row.labels, "le"] : row.labels]),
  ),
);

it("there are three dashboards, each with a name and an id of its own", () => {
  expect(dashboards.map(({ file }) => file)).toEqual([
    "export-api.json",
    "pipeline.json",
    "warehouse-and-jobs.json",
  ]);
  expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(3);
  expect(new Set(dashboards.map(({ title }) => title)).size).toBe(3);
  expect(dashboards.every(({ uid }) => /^[a-z-]{1,40}$/.test(uid))).toBe(true);
});

describe.each(dashboards)("$file", (dashboard) => {
  const panels = panelsOf(dashboard);
  const charts = panels.filter(({ type }) => type !== "row");

  it("has panels with ids, titles and places of their own", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(42);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.has(`${x}/${y}`), `${title} lies on another`).toBe(false);
          taken.add(`${x}/${y}`);
        }
      }
    }
  });

  it("says of each panel what it shows, in which unit, and asks the data source that is chosen", () => {
    for (const { title, description, fieldConfig, targets = [], datasource } of charts) {
      expect(description?.length, title).toBeGreaterThan(20);
      expect(fieldConfig?.defaults.unit, title).toMatch(/^\w+$/);
      expect(datasource, title).toEqual(DATASOURCE);
      expect(targets.length, title).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
      for (const target of targets) expect(target.datasource, title).toEqual(DATASOURCE);
    }
  });

  it("lets one choose data source, namespace and job", () => {
    expect(
      dashboard.templating.list.slice(0, 3).map(({ name, type, allValue }) => [name, type, allValue]),
    ).toEqual([
      ["datasource", "datasource", undefined],
      ["namespace", "query", ".*"],
      ["job", "query", ".+"],
    ]);
  });

  it("uses no variable that it does not have", () => {
    const names = new Set(dashboard.templating.list.map(({ name }) => name));
    const used = [...JSON.stringify(dashboard).matchAll(/\$\{?(?!__)(\w+)/g)].map(([, name = ""]) => name);
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });
});

describe("every query of a dashboard", () => {
  const queries = dashboardQueries();
  const panelQueries = queries.filter(({ place }) => !place.includes(": $"));

  it("names metrics and labels of docs/metrics.md", () => {
    const wrong = queries.flatMap(({ place, expr }) => {
      const { selectors, labels } = readQuery(expr);
      const metrics = selectors
        .filter(({ metric }) => !known.has(metric))
        .map(({ metric }) => `${place}: ${metric}`);
      const ofMetrics = new Set([
        ...TARGET_LABELS,
        ...selectors.flatMap(({ metric }) => known.get(metric) ?? []),
      ]);
      const matched = selectors.flatMap(({ metric, matchers }) =>
        matchers
          .filter(({ label }) => !TARGET_LABELS.includes(label) && !known.get(metric)?.includes(label))
          .map(({ label }) => `${place}: ${metric}{${label}}`),
      );
      return [
        ...metrics,
        ...matched,
        ...labels.filter((label) => !ofMetrics.has(label)).map((label) => `${place}: by ${label}`),
      ];
    });
    expect(queries.length).toBeGreaterThan(100);
    expect(wrong).toEqual([]);
  });

  it("is about the namespaces and jobs that are chosen", () => {
    const wrong = panelQueries.filter(({ expr }) =>
      readQuery(expr).selectors.some(({ matchers }) => {
        const given = matchers.map(({ label, op, value }) => `${label}${op}${value}`);
        return !given.includes("namespace=~$namespace") || !given.includes("job=~$job");
      }),
    );
    expect(wrong).toEqual([]);
  });

  it("takes the maximum of what every process of jobs tells alike", () => {
    const shared =
      /^conversation_export_(job_queue_depth|job_oldest_waiting_age_seconds|job_next_run_timestamp_seconds|upload_windows|warehouse_\w+|erasure_\w+|redis_up|suppressions)$/;
    const wrong = panelQueries.filter(
      ({ expr }) =>
        readQuery(expr).selectors.some(({ metric }) => shared.test(metric)) && !/\bmax\b/.test(expr),
    );
    expect(wrong).toEqual([]);
  });
});
