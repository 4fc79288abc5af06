import { migrate } from "@conversation-export/warehouse";
import type { WarehouseConfig } from "./config.ts";
import { explainStore, requireClickhouse } from "./connections.ts";
import { type Print, renderJson } from "./print.ts";

/**
 * Applies what has not been applied and prints a line for each migration, or all as JSON at the end. Throws
 * `CommandError` or `ServiceError`.
 */
export const applyMigrations = async (
  config: WarehouseConfig,
  json: boolean,
  print: Print,
): Promise<void> => {
  await requireClickhouse(config);
  try {
    const states = await migrate({
      ...config,
      topology: config,
      onApplied: (name, shard) => {
        if (!json) print(`applied    ${name}${shard === undefined ? "" : ` on ${shard}`}`);
      },
    });
    if (json) return print(renderJson(states));
    for (const { name, state } of states) if (state === "unchanged") print(`unchanged  ${name}`);
  } catch (error) {
    throw await explainStore(error, config);
  }
};
