import { type BusMessage, isTooLarge, type OutgoingMessage, type Producer } from "@conversation-export/bus";
import { arrivalHeaders, deadLetterTopic, type Rejected, replaysOf } from "@conversation-export/domain";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import { sendInSpan } from "../event-traces.ts";
import type { IngestMetrics } from "../ingest-metrics.ts";
import type { KeepTrying } from "./keep-trying.ts";
import { noteOf } from "./dead-letter-note.ts";

export type DeadLetter = {
  readonly source: BusMessage;
  readonly rejection: Rejected;
  /** Replace the message's headers of the same names. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** Key and payload stay untouched. */
export const toDeadLetter = ({ source, rejection, headers }: DeadLetter, now: Date): OutgoingMessage => ({
  key: source.key,
  value: source.value,
  headers: {
    ...source.headers,
    ...headers,
    "dl-reason": rejection.reason,
    "dl-detail": rejection.detail,
    "dl-topic": source.topic,
    ...arrivalHeaders(source),
    "dl-key": source.key?.toString("base64") ?? "",
    "dl-rejected-at": now.toISOString(),
    "dl-replays": String(replaysOf(source.headers)),
    ...(source.unreadable !== undefined && {
      "dl-last-offset": String(source.unreadable.lastOffset),
      "dl-payload": "left out",
    }),
  },
});

export type DeadLetterSink = {
  /** Rejects only when `signal` aborts. */
  send(topic: string, deadLetters: readonly DeadLetter[], signal: AbortSignal): Promise<void>;
};

const isRefused = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === "produce" && !error.retryable;

const never = (): boolean => false;

export const createDeadLetterSink = (deps: {
  readonly producer: Pick<Producer, "send">;
  readonly keepTrying: KeepTrying;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => Date;
}): DeadLetterSink => {
  const { producer, keepTrying, metrics, log, now } = deps;

  const send = (
    topic: string,
    messages: readonly OutgoingMessage[],
    signal: AbortSignal,
    isFinal: (error: unknown) => boolean,
  ): Promise<void> =>
    keepTrying({
      step: "dead_letter",
      signal,
      operation: () => producer.send(topic, messages),
      isFinal,
    });

  const sendOrNote = async (
    topic: string,
    messages: readonly OutgoingMessage[],
    signal: AbortSignal,
  ): Promise<void> => {
    // Repeating all would write those before the refused one again and again.
    const isFinal = messages.length > 1 ? isRefused : isTooLarge;
    try {
      await send(topic, messages, signal, isFinal);
    } catch (error) {
      const [first] = messages;
      if (signal.aborted || !isFinal(error) || first === undefined) throw error;
      if (messages.length > 1) {
        for (const message of messages) await sendOrNote(topic, [message], signal);
        return;
      }
      log.error({ err: error, topic }, "sending a dead letter failed, sending it without its payload");
      await send(topic, [noteOf(first)], signal, never);
    }
  };

  return {
    send: async (topic, deadLetters, signal) => {
      if (deadLetters.length === 0) return;
      const at = now();
      const to = deadLetterTopic(topic);
      const messages = deadLetters.map((deadLetter) => toDeadLetter(deadLetter, at));
      await sendInSpan(to, messages.length, () => sendOrNote(to, messages, signal));
      for (const { rejection } of deadLetters) metrics.rejected.inc({ topic, reason: rejection.reason });
    },
  };
};
