import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Rule = {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};
export type Alert = Rule & { readonly alert: string };
type RuleFile = { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] };

export type AlertTest = {
  readonly name: string;
  readonly input_series: readonly { readonly series: string }[];
  readonly promql_expr_test: readonly {
    readonly expr: string;
    readonly exp_samples: readonly { readonly labels: string }[];
  }[];
};

export type Target = { readonly refId: string; readonly expr: string; readonly datasource: unknown };
export type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly Target[];
  readonly panels?: readonly Panel[];
};
export type Variable = {
  readonly name: string;
  readonly type: string;
  readonly definition?: string;
  readonly allValue?: string;
};
export type Dashboard = {
  readonly file: string;
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr?: string }[] };
};

export type SqlDashboard = Omit<Dashboard, "panels" | "file"> & {
  readonly panels: readonly (Omit<Panel, "targets"> & {
    readonly targets?: readonly (Target & { readonly rawSql: string })[];
  })[];
};

export type PlacedQuery = { readonly place: string; readonly expr: string };

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const filesIn = (pattern: string): string[] => globSync(pattern, { cwd: ROOT }).sort();

export const alertFiles = (): string[] => filesIn("deploy/charts/conversation-export/files/alerts/*.yaml");
export const alertTestFiles = (): string[] => filesIn("deploy/charts/alert-tests/*.yaml");

export const readAlertTests = (): AlertTest[] =>
  alertTestFiles().flatMap((file) => (parse(read(file)) as { tests: AlertTest[] }).tests);

export const readRules = (): Rule[] =>
  alertFiles().flatMap((file) => (parse(read(file)) as RuleFile).groups.flatMap(({ rules }) => rules));

export const readAlerts = (): Alert[] =>
  readRules().filter((rule): rule is Alert => rule.alert !== undefined);

export const readDashboards = (): Dashboard[] =>
  filesIn("deploy/charts/conversation-export/files/dashboards/*.json").map((file) => ({
    ...(JSON.parse(read(file)) as Omit<Dashboard, "file">),
    file: basename(file),
  }));

export const readSupportDashboard = (): SqlDashboard =>
  JSON.parse(
    read("deploy/charts/conversation-export/files/dashboards/analytics/support.json"),
  ) as SqlDashboard;

export const panelsOf = (dashboard: Pick<Dashboard, "panels">): Panel[] =>
  dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);

export const ruleQueries = (): PlacedQuery[] =>
  readRules().map(({ alert, record, expr }) => ({ place: alert ?? record ?? "", expr }));

export const dashboardQueries = (): PlacedQuery[] =>
  readDashboards().flatMap((dashboard) => [
    ...panelsOf(dashboard).flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ place: `${dashboard.file}: ${title}`, expr })),
    ),
    ...dashboard.annotations.list.flatMap(({ name, expr }) =>
      expr === undefined ? [] : [{ place: `${dashboard.file}: ${name}`, expr }],
    ),
    ...dashboard.templating.list.flatMap(({ name, definition = "" }) => {
      const [, expr] = /^label_values\((.*), *\w+\)$/.exec(definition) ?? [];
      return expr === undefined ? [] : [{ place: `${dashboard.file}: $${name}`, expr }];
    }),
  ]);

export const readRunbooks = (): Map<string, string> =>
  new Map(
    filesIn("docs/runbooks/[A-Z]*.md")
      .filter((file) => !file.endsWith("README.md"))
      .map((file) => [basename(file, ".md"), read(file)]),
  );
