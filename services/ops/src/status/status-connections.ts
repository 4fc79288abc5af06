import type { Admin } from "@conversation-export/bus";
import type { JobClient } from "@conversation-export/queue";
import {
  type Environment,
  isRetryable,
  type RedisServer,
  ServiceError,
  within,
} from "@conversation-export/runtime";
import { createSession, type Session } from "@conversation-export/warehouse";
import {
  type BusConfig,
  readBusConfig,
  readQueueConfig,
  readServiceSettings,
  readWarehouseConfig,
  type ServiceSettings,
  type WarehouseConfig,
} from "../config.ts";
import {
  explainRedis,
  explainStore,
  openAdmin,
  openJobClient,
  requireClickhouse,
} from "../connect/connections.ts";
import { createKeptConnection, type KeptConnection, QUESTION_MS } from "../connect/kept-connection.ts";
import { CommandError, explainBus, innermostMessage, kafkaAway } from "../explain/explain.ts";
import { EXIT } from "../explain/exit-code.ts";

type Bus = { readonly admin: Admin; readonly config: BusConfig };
type Warehouse = {
  readonly session: Session;
  readonly config: WarehouseConfig;
  readonly settings: ServiceSettings;
};
type Queue = { readonly jobs: JobClient; readonly server: RedisServer };

/** Kept over several looks. */
export type StatusConnections = {
  readonly bus: KeptConnection<Bus>;
  readonly warehouse: KeptConnection<Warehouse>;
  readonly queue: KeptConnection<Queue>;
};

const STATEMENT_MS = 8_000;
const CLOSE_MS = 1_000;

const lateOf = (server: string) => (): CommandError =>
  new CommandError(
    {
      found: `${server} has not answered within ${QUESTION_MS / 1000} seconds`,
      advice: "check that it runs and is not overloaded",
    },
    { exitCode: EXIT.away },
  );

/** An attempt to connect may go on. */
export const closeConnections = ({ bus, warehouse, queue }: StatusConnections): Promise<unknown> =>
  within(Promise.all([bus, warehouse, queue].map((one) => one.close())), CLOSE_MS, () => undefined);

/** Opens nothing before its use. */
export const createStatusConnections = (env: Environment): StatusConnections => ({
  bus: createKeptConnection<Bus>({
    open: async () => {
      const config = readBusConfig(env);
      const admin = await openAdmin(config);
      return { client: { admin, config }, close: admin.stop };
    },
    explain: (error, { config }) => {
      const explained = explainBus(error, config);
      return explained instanceof ServiceError && isRetryable(explained)
        ? kafkaAway(config, innermostMessage(explained), explained)
        : explained;
    },
    late: lateOf("Kafka"),
  }),
  warehouse: createKeptConnection<Warehouse>({
    open: async () => {
      const config = readWarehouseConfig(env);
      const settings = readServiceSettings(env);
      await requireClickhouse(config);
      // A ping keeps it open.
      const own = createSession({
        ...config,
        application: "export-ops",
        topology: config,
        maxConnections: 1,
      });
      const session = own.with({ timeoutMs: STATEMENT_MS });
      return { client: { session, config, settings }, close: own.close };
    },
    explain: (error, { config }) => explainStore(error, config),
    late: lateOf("ClickHouse"),
  }),
  queue: createKeptConnection<Queue>({
    open: async () => {
      const server = readQueueConfig(env);
      const jobs = await openJobClient(server);
      return { client: { jobs, server }, close: jobs.stop };
    },
    explain: (error, { server }) => explainRedis(error, server),
    late: lateOf("Redis"),
  }),
});
