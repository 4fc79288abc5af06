import { conversationForm } from "../record/conversation-form.ts";
import { endUserForm } from "../record/end-user-form.ts";
import type { ExportRecord } from "../record/export-record.ts";
import { messageForm } from "../record/message-form.ts";
import type { RecordForm } from "../record/record-form.ts";
import { byEventType, type EventType, RECORD_KINDS, type RecordKind } from "../record/record-kinds.ts";
import { type Attributes, readEnvelope } from "./envelope.ts";
import type { EventData } from "./event-data.ts";
import { faultFinder } from "./faults.ts";
import type { BusHeaders } from "./headers.ts";
import { note } from "./noted-names.ts";
import { type Ignored, type Rejected, rejected } from "./outcome.ts";
import { parsedDataReader } from "./parsed-data.ts";
import { plainDataReader } from "./plain-data.ts";
import { readInstant } from "./read-instant.ts";
import type { Micros } from "./timestamp.ts";
import type { BusPosition, Version } from "./version.ts";

export type Accepted = {
  readonly kind: "accepted";
  readonly record: ExportRecord;
  /** Fields that the specification does not know, as paths of names: dropped, to be counted; at most 20. */
  readonly unknownFields: readonly string[];
  /** Fields with a value outside the documented set, kept, to be counted; at most 20. */
  readonly nonstandard: readonly string[];
};

export type Outcome = Accepted | Rejected | Ignored;

/** One message of the bus. `text` is the value as UTF-8 text; null stands for no value. */
export type BusEvent = {
  readonly text: string | null;
  readonly headers: BusHeaders;
  readonly position: BusPosition;
  /** A later `time` is refused, since no true export could replace it. µs since the epoch. */
  readonly latestTime?: Micros;
};

/** The step from an event's data to a record that all kinds share: compare the subject, read the dates. */
function finisherOf<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>) {
  const { idOf, created, updated, finish } = form;
  return (
    attributes: Attributes,
    { data, render, unknownFields, repaired }: EventData<Pick<Data, Read>>,
    position: BusPosition,
  ): Accepted | undefined => {
    const id = idOf(data);
    const { clientId, exportedAt, subject } = attributes;
    if (subject !== null && subject !== id) return undefined;
    const updatedText = updated?.of(data) ?? "";
    const dateCreated = readInstant(created.of(data));
    const dateUpdated = updatedText === "" ? dateCreated : readInstant(updatedText);
    if (dateCreated === undefined || dateUpdated === undefined) return undefined;
    const version: Version = { exportedAt, partition: position.partition, offset: position.offset };
    const finished = finish(data, { clientId, id, dateCreated, dateUpdated, version, render });
    if (finished === null) return undefined;
    const { record } = finished;
    if (repaired.length === 0)
      return { kind: "accepted", record, unknownFields, nonstandard: finished.nonstandard };
    const nonstandard = [...finished.nonstandard];
    for (const name of repaired) note(nonstandard, name);
    return { kind: "accepted", record, unknownFields, nonstandard };
  };
}

/** Reads events of one kind. */
function readerOf<Data, Read extends keyof Data & string>(form: RecordForm<Data, Read>, expected: EventType) {
  const plainData = plainDataReader(form);
  const parsedData = parsedDataReader(form);
  const finish = finisherOf(form);
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

const READERS: Readonly<Record<RecordKind, (text: string, event: BusEvent) => Accepted | Rejected>> = {
  conversation: readerOf(conversationForm, RECORD_KINDS.conversation.type),
  message: readerOf(messageForm, RECORD_KINDS.message.type),
  end_user: readerOf(endUserForm, RECORD_KINDS.end_user.type),
};
const READER_OF = byEventType((kind) => READERS[kind]);

/**
 * Turns a bus message of a topic that carries `expected` events into a record, or gives the reason of its
 * rejection.
 */
export function processEvent(event: BusEvent, expected: EventType): Outcome {
  if (event.text === null) return { kind: "ignored", reason: "null_value" };
  if (event.text === "") return rejected("empty_value", "the message has an empty value");
  return READER_OF[expected](event.text, event);
}
