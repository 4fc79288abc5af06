import type { BusMessage } from "@conversation-export/bus";
import {
  type Accepted,
  type EventType,
  type ExportRecord,
  hasSchemaPrefix,
  readMessage,
} from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import type { BufferBudget } from "./buffer-budget.ts";
import type { ClientMonitor } from "../monitor/client-monitor.ts";
import type { IngestMetrics } from "../ingest-metrics.ts";
import type { SuppressionGate } from "@conversation-export/suppression";
import { createRows, type TopicBatch } from "./topic-batch.ts";

export type BatchFiller = {
  add(batch: TopicBatch, message: BusMessage): void;
  /** When it throws, the batch is as before. */
  judge(batch: TopicBatch): Promise<void>;
};

/** Bytes, estimated. */
const MESSAGE_OVERHEAD = 200;
/** Senders choose the names of unknown fields. */
const MAX_FIELD_LABELS = 100;
/** Others may be values in place of a name, such as an address. */
const FIELD_NAME = /^[A-Za-z_]\w{0,63}(?:\.[A-Za-z_]\w{0,63}){0,5}$/;

const bytesOf = ({ bytes, key, value }: BusMessage): number =>
  MESSAGE_OVERHEAD + (bytes ?? (value?.length ?? 0) + (key?.length ?? 0));

export const createBatchFiller = (deps: {
  readonly topic: string;
  readonly type: EventType;
  /** null: landing is off. */
  readonly landingDays: number | null;
  readonly maxTimeAheadMs: number;
  readonly budget: BufferBudget;
  readonly gate: Pick<SuppressionGate, "judgement" | "suspects" | "suppresses">;
  readonly clients: Pick<ClientMonitor, "note">;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
  readonly now: () => number;
}): BatchFiller => {
  const { topic, type, maxTimeAheadMs, budget, gate, clients, metrics, log, now } = deps;
  const labelled = new Set<string>();

  const noteUnknown = (fields: readonly string[]): void => {
    for (const field of fields) {
      const isNew = !labelled.has(field);
      const hasLabel = !isNew || (labelled.size < MAX_FIELD_LABELS && FIELD_NAME.test(field));
      metrics.unknownFields.inc({ topic, field: hasLabel ? field : "other" });
      if (!isNew || !hasLabel) continue;
      labelled.add(field);
      log.warn({ topic, field }, "unknown field dropped");
    }
  };

  const admit = (batch: TopicBatch, message: BusMessage, record: ExportRecord): void => {
    batch.rows.add(record, message.timestamp < 0 ? { ...message, timestamp: now() } : message);
    batch.sources.push(message);
  };

  const note = (outcome: Accepted): void => {
    clients.note(topic, outcome.record.clientId);
    if (outcome.unknownFields.length > 0) noteUnknown(outcome.unknownFields);
    for (const field of outcome.nonstandard) metrics.nonstandardValues.inc({ topic, field });
  };

  const account = (batch: TopicBatch): void => {
    const total = batch.messageBytes + batch.rows.bytes();
    budget.add(total - batch.budgetedBytes);
    batch.budgetedBytes = total;
  };

  return {
    add: (batch, message) => {
      const outcome = readMessage(message, type, { maxTimeAheadMs, now: now() });
      batch.messageBytes += bytesOf(message);
      if (message.value !== null && hasSchemaPrefix(message.value)) metrics.schemaPrefixes.inc({ topic });
      if (batch.trace !== null) batch.trace.take(message, outcome);
      if (outcome.kind === "rejected") {
        batch.deadLetters.push({ source: message, rejection: outcome });
      } else if (outcome.kind === "ignored") {
        metrics.ignored.inc({ topic, reason: outcome.reason });
      } else {
        note(outcome);
        admit(batch, message, outcome.record);
        if (gate.suspects(outcome.record)) batch.judgedBy = null;
      }
      batch.offsets.set(message.partition, (message.unreadable?.lastOffset ?? message.offset) + 1);
      account(batch);
    },
    judge: async (batch) => {
      // Rows cannot be judged, so messages are read again; none was too far ahead on arrival.
      const limits = { maxTimeAheadMs: Infinity, now: now() };
      const records = batch.sources.map((message) => {
        const outcome = readMessage(message, type, limits);
        if (outcome.kind !== "accepted") throw new TypeError("a message that was accepted is not any more");
        return outcome.record;
      });
      const judgement = gate.judgement();
      const erased = await gate.suppresses(records);
      batch.judgedBy = judgement;
      if (!erased.includes(true)) return;
      // A failed request may still read the former rows.
      batch.rows = createRows(type, batch.rows, deps.landingDays);
      const messages = batch.sources.splice(0);
      for (const [at, record] of records.entries()) {
        const message = messages[at] as BusMessage;
        if (erased[at] !== true) {
          admit(batch, message, record);
          continue;
        }
        batch.trace?.ignore(message, "suppressed");
        metrics.ignored.inc({ topic, reason: "suppressed" });
      }
      account(batch);
    },
  };
};
