import type { ExportRecord } from "../kinds/export-record.ts";
import type { HandoffEntry } from "../kinds/handoffs.ts";
import type { RecordForm } from "../kinds/record-form.ts";
import { byEventType, type EventType, RECORD_KINDS } from "../kinds/record-kinds.ts";
import { note } from "../record/noted-names.ts";
import { type Attributes, readEnvelope } from "./envelope.ts";
import type { EventData } from "./event-data.ts";
import { faultFinder } from "./faults.ts";
import type { BusHeaders } from "./headers.ts";
import { type Ignored, type Rejected, rejected } from "./outcome.ts";
import { parsedDataReader } from "./parsed-data.ts";
import { plainDataReader } from "./plain-data.ts";
import { readInstant } from "./read-instant.ts";
import type { Micros } from "./timestamp.ts";
import type { BusPosition } from "./version.ts";

export type Accepted = {
  readonly kind: "accepted";
  readonly record: ExportRecord;
  /** Paths; dropped and counted, at most 20. */
  readonly unknownFields: readonly string[];
  /** Fields with undocumented values; kept and counted, at most 20. */
  readonly nonstandard: readonly string[];
};

export type Outcome = Accepted | Rejected | Ignored;

export type BusEvent = {
  readonly text: string | null;
  readonly headers: BusHeaders;
  readonly position: BusPosition;
  /** µs. A later `time` is rejected: no true export could replace it. */
  readonly latestTime?: Micros;
};

const NO_HANDOFFS: readonly HandoffEntry[] = [];
const NOTHING: readonly string[] = [];

function finisherOf<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>, type: EventType) {
  const { id: ofId, conversationOf, created, updated, columns, finish } = form;
  return (
    attributes: Attributes,
    { data, render, unknownFields, repaired }: EventData<Pick<Data, Read>>,
    position: BusPosition,
  ): Accepted | undefined => {
    const id = ofId.of(data);
    const { clientId, exportedAt, subject } = attributes;
    if (subject !== null && subject !== id) return undefined;
    const updatedText = updated?.of(data) ?? "";
    const dateCreated = readInstant(created.of(data));
    const dateUpdated = updatedText === "" ? dateCreated : readInstant(updatedText);
    if (dateCreated === undefined || dateUpdated === undefined) return undefined;
    const finished = finish(data, { dateCreated, dateUpdated, render });
    if (finished === null) return undefined;
    const { beforeUpload, afterUpload } = finished;
    const record: ExportRecord = {
      type,
      clientId,
      id,
      conversationId: conversationOf === null ? "" : conversationOf(data),
      dateCreated,
      dateUpdated,
      version: { exportedAt, partition: position.partition, offset: position.offset },
      columns: columns.map(({ of }) => of(data, beforeUpload)),
      beforeUpload,
      afterUpload,
      handoffs: finished.handoffs ?? NO_HANDOFFS,
      tail: finished.tail ?? "",
    };
    const ofRecord = finished.nonstandard ?? NOTHING;
    if (repaired.length === 0) return { kind: "accepted", record, unknownFields, nonstandard: ofRecord };
    const nonstandard = [...ofRecord];
    for (const name of repaired) note(nonstandard, name);
    return { kind: "accepted", record, unknownFields, nonstandard };
  };
}

function readerOf<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>, expected: EventType) {
  const plainData = plainDataReader(form);
  const parsedData = parsedDataReader(form);
  const finish = finisherOf(form, expected);
  const rejectionOf = faultFinder(form, expected);

  const accept = (text: string, { headers, position, latestTime }: BusEvent): Accepted | undefined => {
    const envelope = plainData(text, headers) ?? readEnvelope(text, headers);
    if (envelope === undefined) return undefined;
    const { attributes } = envelope;
    if (attributes.type !== expected) return undefined;
    if (latestTime !== undefined && attributes.exportedAt > latestTime) return undefined;
    const read = "render" in envelope ? envelope : parsedData(envelope);
    return read && finish(attributes, read, position);
  };
  return (text: string, event: BusEvent): Accepted | Rejected =>
    accept(text, event) ?? rejectionOf(text, event.headers, event.latestTime);
}

type AnyForm = RecordForm<Readonly<Record<string, unknown>>>;
const READER_OF = byEventType((kind) => {
  const { form, type } = RECORD_KINDS[kind];
  return readerOf(form as unknown as AnyForm, type);
});

export function processEvent(event: BusEvent, expected: EventType): Outcome {
  if (event.text === null) return { kind: "ignored", reason: "null_value" };
  if (event.text === "") return rejected("empty_value", "the message has an empty value");
  return READER_OF[expected](event.text, event);
}
