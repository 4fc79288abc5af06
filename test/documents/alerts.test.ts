import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { seriesNames } from "./exposition.ts";
import { readLogMessages } from "./log-sources.ts";
import { readMetricsPage } from "./metrics-page.ts";
import { readQuery } from "./promql.ts";
import {
  panelsOf,
  readAlerts,
  readAlertTests,
  readDashboards,
  readRules,
  readRunbooks,
} from "./watch-files.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TARGET_LABELS = ["namespace", "job", "pod"];
const SECTIONS = ["What it means", "See it", "Do", "Escalate", "It is over when"];

const rules = readRules();
const alerts = readAlerts();
const alertTests = readAlertTests();
const runbooks = readRunbooks();
const names = [...new Set(alerts.map(({ alert }) => alert))].sort();
const known = new Map(
  readMetricsPage().flatMap((row) =>
    seriesNames(row).map((name) => [name, name.endsWith("_bucket") ? [...row.labels, "le"] : row.labels]),
  ),
);
const recorded = new Set(rules.flatMap(({ record }) => (record === undefined ? [] : [record])));

const metricsOf = (expr: string): string[] =>
  readQuery(expr).selectors.flatMap(({ metric }) => {
    const behind = rules.find(({ record }) => record === metric);
    return behind === undefined ? [metric] : metricsOf(behind.expr);
  });

describe("every rule", () => {
  it("names metrics and labels of docs/metrics.md, or what another rule records", () => {
    const wrong = rules.flatMap(({ alert, record, expr }) => {
      const place = alert ?? record ?? "";
      const { selectors, labels } = readQuery(expr);
      const strange = selectors.flatMap(({ metric, matchers }) => {
        if (recorded.has(metric)) return [];
        const own = known.get(metric);
        if (own === undefined) return [`${place}: ${metric}`];
        return matchers
          .filter(({ label }) => !TARGET_LABELS.includes(label) && !own.includes(label))
          .map(({ label }) => `${place}: ${metric}{${label}}`);
      });
      const all = new Set([...TARGET_LABELS, ...selectors.flatMap(({ metric }) => known.get(metric) ?? [])]);
      return [
        ...strange,
        ...labels.filter((label) => !all.has(label)).map((label) => `${place}: by ${label}`),
      ];
    });
    expect(wrong).toEqual([]);
  });

  it("looks at our processes alone", () => {
    const wrong = rules.flatMap(({ alert, record, expr }) =>
      readQuery(expr)
        .selectors.filter(
          ({ metric, matchers }) =>
            !recorded.has(metric) &&
            !metric.startsWith("kube_") &&
            !matchers.some(({ label, value }) => label === "job" && value.startsWith("conversation-export-")),
        )
        .map(({ metric }) => `${alert ?? record}: ${metric}`),
    );
    expect(wrong).toEqual([]);
  });

  it("tells installations apart", () => {
    expect(
      alerts.filter(
        ({ expr }) => !/\bby \(namespace\b/.test(expr) && ![...recorded].some((name) => expr.includes(name)),
      ),
    ).toEqual([]);
  });
});

describe("docs/scaling.md", () => {
  const page = readFileSync(join(ROOT, "docs/scaling.md"), "utf8");
  const queries = [...page.matchAll(/^```promql\n([\s\S]*?)^```$/gm)].map(([, query = ""]) => query);
  const bare = (query: string): string => query.replace(/#.*$/gm, "").replaceAll(/\s+/g, " ").trim();

  it("asks for metrics and labels that there are", () => {
    expect(queries.length).toBeGreaterThanOrEqual(5);
    const strange = queries.flatMap((query) =>
      readQuery(query).selectors.flatMap(({ metric, matchers }) => {
        const own = recorded.has(metric) ? [] : known.get(metric);
        if (own === undefined) return [metric];
        return matchers.map(({ label }) => label).filter((one) => ![...TARGET_LABELS, ...own].includes(one));
      }),
    );
    expect(strange).toEqual([]);
  });

  it("says of freshness and availability what the rules record", () => {
    const reported = queries.map(bare);
    const recordedAs = (name: string): string =>
      bare(rules.find(({ record }) => record === name)?.expr ?? "");
    expect(reported).toContain(recordedAs("conversation_export:freshness_bad"));
    expect(reported).toContain(
      recordedAs("conversation_export:request_failures:ratio_rate3d").replaceAll("[3d]", "[30d]"),
    );
  });
});

describe("every alert", () => {
  it.each(
    alerts.map((rule) => [`${rule.alert} (${rule.labels?.["severity"]})`, rule] as const),
  )("%s says how bad it is, what it is and where help stands", (_, {
    alert,
    labels = {},
    annotations = {},
  }) => {
    expect(labels["severity"]).toMatch(/^(critical|warning)$/);
    expect(labels["app"]).toBe("conversation-export");
    expect(annotations["summary"]).toMatch(/^conversation-export: /);
    expect(annotations["description"]?.length).toBeGreaterThan(20);
    expect(annotations["runbook_url"]).toBe(`docs/runbooks/${alert}.md`);
  });

  it("uses in its texts only labels that it has", () => {
    const wrong = alerts.flatMap(({ alert, expr, annotations = {} }) => {
      const { labels, selectors } = readQuery(expr);
      const fixed = selectors.flatMap(({ matchers }) =>
        matchers.filter(({ op }) => op === "=").map(({ label }) => label),
      );
      return [
        ...Object.values(annotations)
          .join(" ")
          .matchAll(/\$labels\.(\w+)/g),
      ]
        .map(([, label = ""]) => label)
        .filter((label) => ![...labels, ...fixed].includes(label))
        .map((label) => `${alert}: ${label}`);
    });
    expect(wrong).toEqual([]);
  });

  it("waits before it fires, so that one odd sample wakes nobody", () => {
    expect(alerts.filter((rule) => !/^[1-9]\d*[mh]$/.test(rule.for ?? "")).map(({ alert }) => alert)).toEqual(
      [],
    );
  });

  it("fires in a test, once for each severity, and is silent in another that shows its metrics", () => {
    const untested = alerts.flatMap(({ alert, expr, labels = {} }) => {
      const mentions = alertTests.map(({ promql_expr_test: expressions, ...rest }) => ({
        ...rest,
        expected: expressions.filter((one) => one.expr.includes(`alertname="${alert}"`)),
      }));
      const severity = `severity="${labels["severity"]}"`;
      const fires = mentions.some(({ expected }) =>
        expected.some(({ exp_samples: samples }) =>
          samples.some((sample) => sample.labels.includes(severity) && sample.labels.includes('"firing"')),
        ),
      );
      const shown = metricsOf(expr);
      const silent = mentions.some(
        ({ name, expected, input_series: series }) =>
          name.includes(alert) &&
          name.includes("is silent") &&
          expected.length > 0 &&
          expected.every(
            (one) =>
              one.exp_samples.length === 0 || !one.exp_samples.some((s) => s.labels.includes(severity)),
          ) &&
          series.some((one) => shown.some((metric) => one.series.startsWith(`${metric}{`))),
      );
      return [
        ...(fires ? [] : [`${alert} (${severity}) fires nowhere`]),
        ...(silent ? [] : [`${alert} (${severity}) is silent nowhere`]),
      ];
    });
    expect(untested).toEqual([]);
  });

  it("is silent where nothing is wrong: some test has all rules, at rest, idle, new and in a rollout", () => {
    const quiet = alertTests.filter(({ name }) => name.startsWith("all alerts are silent"));
    const shown = new Set(
      quiet.flatMap(({ input_series: all }) => all.map((one) => one.series.split("{")[0])),
    );
    expect(quiet.length).toBeGreaterThanOrEqual(4);
    expect(
      alerts
        .filter(({ expr }) => !metricsOf(expr).some((metric) => shown.has(metric)))
        .map(({ alert }) => alert),
    ).toEqual(["BusRecordsLost", "TopicCreatedAnew"]);
  });
});

describe("every runbook", () => {
  it("belongs to an alert, and each alert has one", () => {
    expect([...runbooks.keys()].sort()).toEqual(names);
  });

  const panels = new Map(
    readDashboards().map((dashboard) => [
      dashboard.title,
      new Set(panelsOf(dashboard).map(({ title }) => title)),
    ]),
  );
  const messages = readLogMessages();

  it.each([...runbooks])("%s is whole and true", (name, text) => {
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title)).toEqual(SECTIONS);
    const severities = [
      ...new Set(alerts.filter(({ alert }) => alert === name).map(({ labels }) => labels?.["severity"])),
    ];
    const [, reported = ""] = /^Severity: ([a-z ]+)\./m.exec(text) ?? [];
    for (const severity of severities) expect(reported).toContain(severity);
    const [, title = "", shown = ""] = /^Severity: .* Dashboard \*\*(.+?)\*\*: (.+)\.$/m.exec(text) ?? [];
    const missing = [...shown.matchAll(/\*(.+?)\*/g)]
      .map(([, panel = ""]) => panel)
      .filter((panel) => panels.get(title)?.has(panel) !== true);
    expect(shown, "its panels").not.toBe("");
    expect(missing, "panels that there are not").toEqual([]);
    const unsaid = [...text.matchAll(/`"(.+?)"`/g)]
      .map(([, quoted = ""]) => quoted)
      .filter(
        (quoted) =>
          !messages.some(({ text: said, whole }) => (whole ? said === quoted : quoted.startsWith(said))),
      );
    expect(unsaid, "messages that nothing logs").toEqual([]);
    const broken = [...text.matchAll(/\]\(([^)#]+)/g)]
      .map(([, to = ""]) => to)
      .filter((to) => !existsSync(join(ROOT, "docs/runbooks", to)));
    expect(broken, "links that lead nowhere").toEqual([]);
  });

  it("is in the list of docs/runbooks/README.md", () => {
    const list = readFileSync(join(ROOT, "docs/runbooks/README.md"), "utf8");
    expect([...list.matchAll(/^\| \[(\w+)\]\(\1\.md\) \|/gm)].map(([, name = ""]) => name).sort()).toEqual(
      names,
    );
  });
});
