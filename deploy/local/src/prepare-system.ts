import { commonEnvironment, type Surroundings } from "./supervise/services.ts";
import { type Stack, type StackOptions, startStack } from "./stack.ts";

export type Ops = (env: NodeJS.ProcessEnv, ...words: string[]) => Promise<string>;

export type PreparationOptions = {
  readonly stack: StackOptions;
  readonly brokers?: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cursorSecret: string;
  readonly suppressionSecret: string;
  readonly ops: Ops;
  /** For `export-ops topics create`. */
  readonly topics?: readonly string[];
  readonly onServers?: (stack: Stack) => void;
};

export type PreparedSystem = {
  readonly stack: Stack;
  readonly about: Surroundings;
  /** For export-ops. */
  readonly operator: NodeJS.ProcessEnv;
};

/** Stops the servers if a step fails. */
export async function prepareSystem(options: PreparationOptions): Promise<PreparedSystem> {
  const { env, ops } = options;
  const stack = await startStack(options.stack);
  try {
    options.onServers?.(stack);
    const about: Surroundings = {
      kafkaBrokers: (options.brokers ?? stack.kafka.brokers).join(","),
      clickhouseUrl: stack.clickhouse.url,
      redisUrl: stack.redis.url,
      cursorSecret: options.cursorSecret,
      suppressionSecret: options.suppressionSecret,
    };
    const operator = {
      ...env,
      ...commonEnvironment(env, about),
      CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
    };
    await ops(operator, "migrate");
    // Migrated before, since it writes the audit table.
    await ops(operator, "topics", "create", ...(options.topics ?? []));
    return { stack, about, operator };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}
