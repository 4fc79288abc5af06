import type { JobHandler } from "@conversation-export/queue";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import { firstOf } from "./first-of.ts";

type BusClient = { start(): Promise<void>; stop(): Promise<void> };

/** Clients of the bus that connect beside everything else: jobs that do not need them run without Kafka. */
export type BusClients = {
  /** Begins to connect and does not wait. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when all are connected. Throws ServiceError `kafka_unavailable`, to be tried again, after a while. */
  connected(signal: AbortSignal): Promise<void>;
};

const PATIENCE_MS = 30_000;

export const createBusClients = (deps: {
  readonly clients: readonly BusClient[];
  readonly log: Logger;
  /** What cannot pass, such as refused credentials. */
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
        log.error({ err: error }, "Kafka refuses the connection");
        onFatal(error);
      });
      return Promise.resolve();
    },
    stop: async () => {
      isStopping = true;
      await Promise.all(clients.map((client) => client.stop()));
    },
    connected: async (signal) => {
      const late = AbortSignal.timeout(patienceMs);
      try {
        await firstOf(all, AbortSignal.any([signal, late]));
      } catch (error) {
        signal.throwIfAborted();
        if (!late.aborted) throw error;
        throw new ServiceError("kafka_unavailable", "Kafka does not answer", { retryable: true });
      }
    },
  };
};

/** The job, begun when the bus is there. */
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
