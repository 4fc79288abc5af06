import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CHART, readChartValues, renderValuesTable } from "./values-table.ts";

const readCredentials = (): string[] => {
  const template = readFileSync(join(CHART, "templates/_credentials.tpl"), "utf8");
  const users = [...(/range \$user := list ([^-]*?) -/.exec(template)?.[1] ?? "").matchAll(/"(\w+)"/g)];
  const others = [...template.matchAll(/set \$all "([\w-]+)"/g)];
  return [
    ...users.map(([, user = ""]) => `clickhouse-${user}-password`),
    ...others.map(([, id = ""]) => id),
  ].sort();
};

export const renderValuesPage = (): string => renderValuesTable(readChartValues(), readCredentials());
