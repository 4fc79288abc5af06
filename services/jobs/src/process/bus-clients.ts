import type { JobHandler } from "@conversation-export/queue";
import { type Logger, ServiceError, unlessAborted, within } from "@conversation-export/runtime";

type BusClient = { start(): Promise<void>; stop(): Promise<void> };

/** Jobs without Kafka run while it is away. */
export type BusClients = {
  /** Does not wait. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** @throws ServiceError `kafka_unavailable` (retryable) after `patienceMs` */
  connected(signal: AbortSignal): Promise<void>;
};

const PATIENCE_MS = 30_000;

export const createBusClients = (deps: {
  readonly clients: readonly BusClient[];
  readonly log: Logger;
  /** Such as rejected credentials. */
  readonly onFatal: (error: unknown) => void;
  readonly patienceMs?: number;
}): BusClients => {
  const { clients, log, onFatal, patienceMs = PATIENCE_MS } = deps;
  let isStopping = false;
  let all: Promise<unknown> = Promise.reject(
    new ServiceError("kafka_unavailable", "the service has not begun"),
  );
  all.catch(() => undefined);

  return {
    start: () => {
      all = Promise.all(clients.map((client) => client.start()));
      all.catch((error: unknown) => {
        if (isStopping) return;
        log.error({ err: error }, "connecting to Kafka failed");
        onFatal(error);
      });
      return Promise.resolve();
    },
    stop: async () => {
      isStopping = true;
      await Promise.all(clients.map((client) => client.stop()));
    },
    connected: async (signal) => {
      await within(unlessAborted(all, signal), patienceMs, () => {
        throw new ServiceError("kafka_unavailable", "Kafka does not answer", { retryable: true });
      });
    },
  };
};

export const withBus = <Data, Result, State>(
  bus: Pick<BusClients, "connected">,
  handler: JobHandler<Data, Result, State>,
): JobHandler<Data, Result, State> => ({
  type: handler.type,
  run: async (context) => {
    await bus.connected(context.signal);
    return handler.run(context);
  },
});
