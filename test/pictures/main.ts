import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { type Answer, readAnswer } from "./answer.ts";
import { type Dashboard, readDashboard } from "./dashboard.ts";
import { type Filling, fillSql } from "./fill-sql.ts";
import { drawDashboard } from "./picture.ts";
import { MONTH, writeMonth } from "./sample-month.ts";

const PICTURE = join(import.meta.dirname, "../../docs/pictures/support-dashboard.svg");

type Ask = (sql: string) => Promise<Answer>;

/** Chooses what a variable offers: all values of its query, the text of a text box. */
const choose = async ({ templating }: Dashboard, ask: Ask): Promise<Filling> => {
  let filling: Filling = { range: MONTH, variables: {} };
  for (const { name, type, query } of templating.list) {
    if (type === "datasource") continue;
    const values =
      type === "query" ? (await ask(fillSql(query, filling))).rows.map(([value]) => String(value)) : [query];
    filling = { ...filling, variables: { ...filling.variables, [name]: values } };
  }
  return filling;
};

/** Asks each panel's own statement. */
const askPanels = async (dashboard: Dashboard, ask: Ask): Promise<Map<number, Answer>> => {
  const filling = await choose(dashboard, ask);
  const answers = new Map<number, Answer>();
  for (const { id, title, targets = [] } of dashboard.panels) {
    const [target, ...more] = targets;
    if (more.length > 0) throw new Error(`panel "${title}": several statements cannot be drawn`);
    if (target?.rawSql !== undefined) answers.set(id, await ask(fillSql(target.rawSql, filling)));
  }
  return answers;
};

const draw = async (warehouse: Warehouse): Promise<string> => {
  await warehouse.write(writeMonth(), MONTH.to * 1_000);
  const dashboard = readDashboard("analytics/support.json");
  const ask: Ask = async (sql) => readAnswer(await warehouse.sql(`${sql} FORMAT JSONCompact`, "analyst"));
  return drawDashboard(dashboard, await askPanels(dashboard, ask), MONTH);
};

const warehouse = await startWarehouse();
try {
  writeFileSync(PICTURE, await draw(warehouse));
  process.stdout.write(`${PICTURE}\n`);
} finally {
  await warehouse.stop();
}
