import { retry, ServiceError } from "@conversation-export/runtime";
import { migrate } from "@conversation-export/warehouse";
import type { WarehouseConfig } from "../config.ts";
import { explainStore, requireClickhouse } from "../connect/connections.ts";
import { type Print, renderJson } from "../output/print.ts";

/** Another migration may rewrite tables. */
const LOCKED_DEADLINE_MS = 660_000;

const placed = (name: string, shard: string | undefined): string =>
  shard === undefined ? name : `${name} on ${shard}`;

/** Waits for the lock. @throws CommandError, or ServiceError when a migration fails */
export const applyMigrations = async (
  config: WarehouseConfig,
  json: boolean,
  { print, say }: { readonly print: Print; readonly say: Print },
): Promise<void> => {
  await requireClickhouse(config);
  let reported = false;
  const run = () =>
    migrate({
      ...config,
      topology: config,
      // The last line names the one that failed, or ran when the command was ended.
      onBegun: (name, shard) => say(`applying   ${placed(name, shard)}`),
      onApplied: (name, shard) => {
        if (!json) print(`applied    ${placed(name, shard)}`);
      },
    });
  try {
    const states = await retry(run, {
      deadlineMs: LOCKED_DEADLINE_MS,
      retryable: (error) => error instanceof ServiceError && error.code === "migration_locked",
      onRetry: () => {
        if (!reported)
          say("another migration runs, or was killed less than 30 seconds ago: waiting for its lock");
        reported = true;
      },
    });
    if (json) return print(renderJson(states));
    for (const { name, state } of states) if (state === "unchanged") print(`unchanged  ${name}`);
  } catch (error) {
    throw await explainStore(error, config);
  }
};
