import { expect, it } from "vitest";
import { panelsOf, readSupportDashboard } from "./watch-files.ts";

const DATASOURCE = { type: "grafana-clickhouse-datasource", uid: "${datasource}" };
const dashboard = readSupportDashboard();
const charts = panelsOf(dashboard).filter(({ type }) => type !== "row");

it("has panels with ids and titles of their own, none on another", () => {
  expect(charts.length).toBeGreaterThan(10);
  const panels = panelsOf(dashboard);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)}/${y + Math.floor(cell / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});

it("says of each panel what it shows, in which unit, and asks the data source that is chosen", () => {
  for (const { title, description, fieldConfig, targets = [], datasource } of charts) {
    expect(description?.length, title).toBeGreaterThan(20);
    expect(fieldConfig?.defaults.unit, title).toMatch(/^\w+$/);
    for (const one of [datasource, ...targets.map((target) => target.datasource)])
      expect(one, title).toEqual(DATASOURCE);
  }
});

it("uses the variables that it has", () => {
  const names = new Set(dashboard.templating.list.map(({ name }) => name));
  const used = [...JSON.stringify(dashboard).matchAll(/\$\{?(?!__)(\w+)/g)].map(([, name = ""]) => name);
  expect(new Set(used)).toEqual(names);
});
