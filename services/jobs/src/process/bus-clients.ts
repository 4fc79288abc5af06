import type { JobHandler } from "@conversation-export/queue";
import { type Logger, type Part, ServiceError, unlessAborted, within } from "@conversation-export/runtime";

const PATIENCE_MS = 30_000;

/** Jobs without Kafka run while it is away. */
export const createBusClients = (deps: {
  readonly clients: readonly Pick<Part, "start" | "stop">[];
  readonly log: Logger;
  /** Such as rejected credentials. */
  readonly onFatal: (error: unknown) => void;
  readonly patienceMs?: number;
}) => {
  const { clients, log, onFatal, patienceMs = PATIENCE_MS } = deps;
  let isStopping = false;
  let all: Promise<unknown> = Promise.reject(
    new ServiceError("kafka_unavailable", "the service has not begun"),
  );
  all.catch(() => undefined);

  return {
    /** Does not wait. */
    start: (): Promise<void> => {
      all = Promise.all(clients.map((client) => client.start()));
      all.catch((error: unknown) => {
        if (isStopping) return;
        log.error({ err: error }, "connecting to Kafka failed");
        onFatal(error);
      });
      return Promise.resolve();
    },
    stop: async (): Promise<void> => {
      isStopping = true;
      await Promise.all(clients.map((client) => client.stop()));
    },
    /** @throws ServiceError `kafka_unavailable` (retryable) after `patienceMs` */
    connected: async (signal: AbortSignal): Promise<void> => {
      await within(unlessAborted(all, signal), patienceMs, () => {
        throw new ServiceError("kafka_unavailable", "Kafka does not answer", { retryable: true });
      });
    },
  };
};

export const withBus = <Data, Result, State>(
  bus: Pick<ReturnType<typeof createBusClients>, "connected">,
  handler: JobHandler<Data, Result, State>,
): JobHandler<Data, Result, State> => ({
  type: handler.type,
  run: async (context) => {
    await bus.connected(context.signal);
    return handler.run(context);
  },
});
