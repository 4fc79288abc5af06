import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Answer, type Column, readAnswer, seriesOf, type Value } from "./answer.ts";
import { type Panel, readDashboard } from "./dashboard.ts";
import { fillSql } from "./fill-sql.ts";
import { fillPromql } from "./operators/fill-promql.ts";
import { matrixAnswer } from "./operators/matrix-answer.ts";
import { drawDashboard } from "./picture.ts";
import { MONTH, writeMonth } from "./sample-month.ts";
import { writeValue } from "./units.ts";

const dashboard = readDashboard("analytics/support.json");
const charts = dashboard.panels.filter(({ type }) => type !== "row");
const readPicture = (name: string): string =>
  readFileSync(join(import.meta.dirname, `../../docs/pictures/${name}-dashboard.svg`), "utf8");
const shown = readPicture("support");

const column = (kind: Column["kind"], name: string = kind): Column => ({ kind, name });
const table = (columns: readonly Column[], ...rows: readonly (readonly Value[])[]): Answer => ({
  columns,
  rows,
});
const DAY = 86_400_000;
const ANSWERS: Readonly<Record<string, Answer>> = {
  stat: table([column("number")], [7]),
  table: table([column("text"), column("number")], ["first", 1], ["second", null]),
  barchart: table([column("text"), column("number")], ["first", 1]),
  timeseries: table([column("time"), column("number")], [MONTH.from, 1], [MONTH.from + DAY, 2]),
};
const answersOf = (panels: readonly Panel[]): Map<number, Answer> =>
  new Map(
    panels.flatMap(({ id, type }) => (ANSWERS[type] === undefined ? [] : [[id, ANSWERS[type]] as const])),
  );
const drawPanels = (panels: readonly Panel[], answers = answersOf(panels)): string =>
  drawDashboard({ title: "Some", panels }, answers, MONTH);
const panelOf = (type: string): Panel => {
  const panel = charts.find((one) => one.type === type);
  if (panel === undefined) throw new Error(`no ${type}`);
  return panel;
};

describe("a picture", () => {
  it("has every panel of the dashboard", () => {
    const svg = drawPanels(dashboard.panels);
    for (const { title } of dashboard.panels) expect(svg).toContain(`>${title}</text>`);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    const plots = charts.filter(({ type }) => type === "timeseries" || type === "barchart");
    expect(svg.match(/<svg width=/g)).toHaveLength(plots.length);
    for (const value of ["7", "first"]) expect(svg).toContain(`>${value}</text>`);
  });

  it("in the docs has every panel of the dashboard: `make pictures` draws it anew", () => {
    for (const { title } of dashboard.panels) expect(shown).toContain(`>${title}</text>`);
    expect(shown).not.toMatch(/NaN|Infinity|undefined|No data/);
  });

  it.each(["pipeline", "export-api", "warehouse-and-jobs"])("can be drawn of the dashboard %s", (name) => {
    const { panels } = readDashboard(`${name}.json`);
    const value = matrixAnswer([
      {
        legendFormat: "",
        matrix: [
          {
            metric: {},
            values: [
              [MONTH.from / 1_000, "1"],
              [MONTH.from / 1_000 + 15, "NaN"],
            ],
          },
        ],
      },
    ]);
    const svg = drawPanels(panels, new Map(panels.map(({ id }) => [id, value])));
    for (const { title } of panels) expect(svg).toContain(`>${title}</text>`);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it.each([
    "pipeline",
    "export-api",
    "warehouse-and-jobs",
  ])("in the docs has every panel of the dashboard %s: `make operator-pictures` draws it anew", (name) => {
    const svg = readPicture(name);
    for (const { title } of readDashboard(`${name}.json`).panels) expect(svg).toContain(`>${title}</text>`);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it("has no panel whose type, unit or answer is unknown, and says which", () => {
    const { title } = panelOf("stat");
    const changed = (changes: Partial<Panel>): Panel[] => [{ ...panelOf("stat"), ...changes }];
    expect(() => drawPanels(changed({ type: "gauge" }))).toThrow(`panel "${title}": the type "gauge"`);
    expect(() => drawPanels(changed({}), new Map())).toThrow(`panel "${title}": nothing was asked`);
    const fieldConfig = { defaults: { unit: "parsec" }, overrides: [] };
    expect(() => drawPanels(changed({ fieldConfig }))).toThrow('"parsec"');
  });

  it("has bars of one day alone", () => {
    const panel = charts.find(({ fieldConfig }) => fieldConfig?.defaults.custom?.drawStyle === "bars");
    if (panel === undefined) throw new Error("no bars");
    const day = table([column("time"), column("number")], [MONTH.from, 1]);
    const svg = drawPanels([panel], new Map([[panel.id, day]]));
    expect(svg).not.toMatch(/NaN|Infinity/);
    expect(svg).toMatch(/<path[^>]*fill="#3274d9"/);
  });

  it("says that there is no data, and how many rows have no room", () => {
    const one = (answer: Answer): string =>
      drawPanels([panelOf("table")], new Map([[panelOf("table").id, answer]]));
    expect(one(table([column("text")]))).toContain("No data");
    expect(one(table([column("text")], ...Array.from({ length: 20 }, (_, at) => [`row ${at}`])))).toMatch(
      /row 6.*and 13 more/,
    );
  });
});

describe("fillSql", () => {
  const range = { from: Date.parse("2026-10-01T00:00:00Z"), to: Date.parse("2026-10-31T23:59:59Z") };
  const variables = { database: ["views"], client: ["acme", "o'neil"] };

  it("replaces macros and variables as Grafana does", () => {
    const fill = (sql: string): string => fillSql(sql, { range, variables });
    expect(fill("$__timeFilter(at)")).toBe("at >= toDateTime(1790812800) AND at <= toDateTime(1793491199)");
    expect(fill("$__dateFilter(day)")).toBe("day >= toDate('2026-10-01') AND day <= toDate('2026-10-31')");
    expect(fill("${database}.t IN (${client:singlequote})")).toBe("views.t IN ('acme','o\\'neil')");
  });

  it("leaves nothing of Grafana in any statement of the dashboard", () => {
    for (const { targets = [] } of charts)
      for (const { rawSql = "$" } of targets)
        expect(fillSql(rawSql, { range, variables })).not.toContain("$");
  });

  it.each([
    ["$__interval", "nothing replaces $__interval"],
    ["${missing}", "nothing is chosen for the variable missing"],
    ["${client}", "the variable client has several values"],
    ["${database:csv}", "nothing replaces ${database:csv}"],
  ])("refuses %s", (sql, message) => {
    expect(() => fillSql(sql, { range, variables })).toThrow(message);
  });
});

describe("fillPromql", () => {
  const fill = (expr: string): string =>
    fillPromql(expr, { variables: { namespace: ".*", job: ".+" }, step: 15, scrapeInterval: 5 });

  it("replaces variables, and the interval of rates by what holds four points", () => {
    expect(fill(`rate(a{namespace=~"$namespace",job=~"$job"}[$__rate_interval])`)).toBe(
      `rate(a{namespace=~".*",job=~".+"}[20s])`,
    );
    expect(() => fill("a[$__interval]")).toThrow("nothing replaces $__interval");
  });
});

describe("an answer", () => {
  it("numbers series of one name", () => {
    const one = { metric: { topic: "messages" }, values: [] };
    const { columns } = matrixAnswer([{ matrix: [one, one], legendFormat: "{{topic}}" }]);
    expect(columns.map(({ name }) => name)).toEqual(["time", "messages", "messages (2)"]);
  });

  it("of Prometheus has a column for each series, with a gap for what is no number", () => {
    const matrix = [
      {
        metric: { topic: "messages" },
        values: [
          [1, "2"],
          [2, "NaN"],
        ] as const,
      },
      { metric: { topic: "conversations" }, values: [[2, "3"]] as const },
    ];
    const { columns, rows } = matrixAnswer([{ matrix, legendFormat: "of {{topic}}" }]);
    expect(columns.map(({ name }) => name)).toEqual(["time", "of messages", "of conversations"]);
    expect(rows).toEqual([
      [1_000, 2, null],
      [2_000, null, 3],
    ]);
  });

  it("gives a series for each number and each text, all with the same times", () => {
    const answer = readAnswer(
      JSON.stringify({
        meta: [
          { name: "time", type: "DateTime('UTC')" },
          { name: "platform", type: "LowCardinality(String)" },
          { name: "n", type: "UInt64" },
        ],
        data: [
          ["2026-10-01 00:00:00", "web", "3"],
          ["2026-10-02 00:00:00", "email", 4],
        ],
      }),
    );
    const [first, second] = [Date.parse("2026-10-01T00:00:00Z"), Date.parse("2026-10-02T00:00:00Z")];
    expect(seriesOf(answer)).toEqual([
      {
        name: "n email",
        field: "n",
        points: [
          [first, null],
          [second, 4],
        ],
      },
      {
        name: "n web",
        field: "n",
        points: [
          [first, 3],
          [second, null],
        ],
      },
    ]);
  });

  it.each([
    [3.146, "none", undefined, "3.15"],
    [1234.5, "none", undefined, "1235"],
    [0, "percentunit", undefined, "0%"],
    [0.715, "percentunit", 1, "71.5%"],
    [59, "s", 0, "59 s"],
    [150, "s", undefined, "2.5 min"],
    [7_200, "s", undefined, "2 h"],
    [172_800, "s", undefined, "2 d"],
    [0.0123, "s", undefined, "12.3 ms"],
    [1_536, "bytes", undefined, "1.5 KiB"],
    [2_500_000, "short", undefined, "2.5 Mil"],
    [12_345, "Bps", 1, "12.3 kB/s"],
  ])("%d in %s with %s decimals is %s", (value, unit, decimals, written) => {
    expect(writeValue(value, unit, decimals)).toBe(written);
  });
});

it("the sample is the same on every run, and all of it in its month", () => {
  const month = writeMonth();
  expect(writeMonth()).toEqual(month);
  expect(month.length).toBeGreaterThan(2_000);
  const created = month.map(({ dateCreated }) => dateCreated / 1_000);
  expect(Math.min(...created)).toBeGreaterThan(MONTH.from);
  expect(Math.max(...created)).toBeLessThan(MONTH.to);
});
