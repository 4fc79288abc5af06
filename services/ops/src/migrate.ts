import { retry, ServiceError } from "@conversation-export/runtime";
import { migrate } from "@conversation-export/warehouse";
import type { WarehouseConfig } from "./config.ts";
import { explainStore, requireClickhouse } from "./connections.ts";
import { type Print, renderJson } from "./print.ts";

/** The lock of a run that was killed counts for ten minutes. */
const LOCKED_DEADLINE_MS = 660_000;

/**
 * Applies what has not been applied and prints a line for each migration, or all as JSON at the end. Waits while
 * another run holds the lock. Throws `CommandError` or `ServiceError`.
 */
export const applyMigrations = async (
  config: WarehouseConfig,
  json: boolean,
  { print, say }: { readonly print: Print; readonly say: Print },
): Promise<void> => {
  await requireClickhouse(config);
  let told = false;
  const run = () =>
    migrate({
      ...config,
      topology: config,
      onApplied: (name, shard) => {
        if (!json) print(`applied    ${name}${shard === undefined ? "" : ` on ${shard}`}`);
      },
    });
  try {
    const states = await retry(run, {
      deadlineMs: LOCKED_DEADLINE_MS,
      retryable: (error) => error instanceof ServiceError && error.code === "migration_locked",
      onRetry: () => {
        if (!told)
          say("another migration runs, or was killed less than ten minutes ago: waiting for its lock");
        told = true;
      },
    });
    if (json) return print(renderJson(states));
    for (const { name, state } of states) if (state === "unchanged") print(`unchanged  ${name}`);
  } catch (error) {
    throw await explainStore(error, config);
  }
};
