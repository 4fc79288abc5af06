import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CHART, readChartValues, renderValuesTable } from "./values-table.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The names of all credentials, as _credentials.tpl sets them. */
const readCredentials = (): string[] => {
  const template = readFileSync(join(CHART, "templates/_credentials.tpl"), "utf8");
  const users = [...(/range \$user := list ([^-]*?) -/.exec(template)?.[1] ?? "").matchAll(/"(\w+)"/g)];
  const others = [...template.matchAll(/set \$all "([\w-]+)"/g)];
  return [
    ...users.map(([, user = ""]) => `clickhouse-${user}-password`),
    ...others.map(([, id = ""]) => id),
  ].sort();
};

/** Alerts and dashboards that the chart carries: where the copy lies in it, and what it is a copy of. */
const copies = [
  { from: "deploy/alerts/*.yaml", to: "files/alerts" },
  { from: "deploy/dashboards/*.json", to: "files/dashboards" },
];

/** What is made from something else, by path from the root of the project. */
export const generatedFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ["docs/chart-values.md", renderValuesTable(readChartValues(), readCredentials())],
    ...copies.flatMap(({ from, to }) =>
      globSync(from, { cwd: ROOT })
        .sort()
        .map((path): [string, string] => [
          join("deploy/charts/conversation-export", to, basename(path)),
          readFileSync(join(ROOT, path), "utf8"),
        ]),
    ),
  ]);

/** The copies that there are, whether they should be or not. */
export const presentCopies = (): string[] =>
  globSync("deploy/charts/conversation-export/files/*/*", { cwd: ROOT }).sort();

if (import.meta.main) {
  for (const path of presentCopies()) rmSync(join(ROOT, path));
  for (const [path, content] of generatedFiles()) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), content);
  }
}
