import { commonEnvironment, type Surroundings } from "./supervise/services.ts";
import { type Stack, type StackOptions, startStack } from "./stack.ts";

/** Runs export-ops with these words and resolves to what it prints. */
export type Ops = (env: NodeJS.ProcessEnv, ...words: string[]) => Promise<string>;

export type PreparationOptions = {
  readonly stack: StackOptions;
  /** Brokers in place of the stack's own. */
  readonly brokers?: readonly string[];
  /** What every process gets in addition to the addresses. */
  readonly env: NodeJS.ProcessEnv;
  readonly cursorSecret: string;
  readonly suppressionSecret: string;
  readonly ops: Ops;
  /** Options of `export-ops topics create`. */
  readonly topics?: readonly string[];
  /** Called as soon as the servers run. */
  readonly onServers?: (stack: Stack) => void;
};

/** Servers with tables and topics, to start services against. */
export type PreparedSystem = {
  readonly stack: Stack;
  readonly about: Surroundings;
  /** The environment of export-ops, with the user who migrates. */
  readonly operator: NodeJS.ProcessEnv;
};

/**
 * The one way from nothing to a system: servers, then migrations and topics.
 *
 * @throws Error with the reason; the servers are stopped then
 */
export async function prepareSystem(options: PreparationOptions): Promise<PreparedSystem> {
  const { env, ops } = options;
  const stack = await startStack(options.stack);
  try {
    options.onServers?.(stack);
    const url = stack.clickhouse.url;
    const about: Surroundings = {
      kafkaBrokers: (options.brokers ?? stack.kafka.brokers).join(","),
      migratorUrl: url("migrator"),
      writerUrl: url("writer"),
      readerUrl: url("reader"),
      lookupUrl: url("lookup"),
      intakeUrl: url("intake"),
      jobsUrl: url("jobs"),
      analystUrl: url("analyst"),
      redisUrl: stack.redis.url,
      cursorSecret: options.cursorSecret,
      suppressionSecret: options.suppressionSecret,
    };
    const operator = { ...env, ...commonEnvironment(env, about), CLICKHOUSE_URL: about.migratorUrl };
    await ops(operator, "migrate");
    // Noted in the audit, which is a table.
    await ops(operator, "topics", "create", ...(options.topics ?? []));
    return { stack, about, operator };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}
