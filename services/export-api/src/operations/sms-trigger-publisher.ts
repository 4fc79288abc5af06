import type { OutgoingMessage, Producer } from "@conversation-export/bus";
import { type SmsTriggerEvent, smsTriggerBusKey } from "@conversation-export/domain";
import {
  inSpan,
  type Logger,
  retry,
  ServiceError,
  type SpanOptions,
  traceHeaders,
} from "@conversation-export/runtime";

export type TriggerPublisher = ReturnType<typeof createTriggerPublisher>;

const MAX_RECONNECT_MS = 30_000;

const toMessage = (event: SmsTriggerEvent): OutgoingMessage => ({
  key: smsTriggerBusKey(event),
  value: JSON.stringify(event),
  headers: { "content-type": "application/cloudevents+json; charset=utf-8", ...traceHeaders() },
});

const UNAVAILABLE = "bus_unavailable";

const unavailable = (): ServiceError =>
  new ServiceError(UNAVAILABLE, "the event bus does not answer", { retryable: true });

/** Nothing was sent. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === UNAVAILABLE;

export const createTriggerPublisher = (deps: {
  readonly producer: Producer;
  readonly topic: string;
  readonly stallMs: number;
  readonly log: Logger;
}) => {
  const { producer, topic, stallMs, log } = deps;
  const stopping = new AbortController();
  const sending: SpanOptions = {
    kind: "PRODUCER",
    attributes: {
      "messaging.system": "kafka",
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": topic,
    },
  };
  let connected = false;
  let stalled = 0;

  const connect = async (): Promise<void> => {
    try {
      await retry(() => producer.start(), {
        signal: stopping.signal,
        initialMs: 1_000,
        maxMs: MAX_RECONNECT_MS,
        // The service exports without Kafka, so even rejected credentials must not end it.
        retryable: () => true,
        onRetry: (error) =>
          log.error({ err: error }, "starting the producer of SMS triggers failed, retrying"),
      });
      connected = true;
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    }
  };

  return {
    /** Connects in the background. */
    start: (): Promise<void> => {
      void connect();
      return Promise.resolve();
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      connected = false;
      await producer.stop();
    },
    /** @throws ServiceError `bus_unavailable` at once while unconnected or an event is overdue */
    publish: async (event: SmsTriggerEvent): Promise<void> => {
      if (!connected || stalled > 0) throw unavailable();
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        stalled += 1;
        log.warn({ topic }, "publishing SMS triggers failed, Kafka does not acknowledge");
      }, stallMs);
      try {
        await inSpan(`send ${topic}`, sending, () => producer.send(topic, [toMessage(event)]));
      } finally {
        clearTimeout(timer);
        if (late) stalled -= 1;
      }
    },
  };
};
