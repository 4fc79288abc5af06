import { conversationForm } from "../record/conversation-form.ts";
import { endUserForm } from "../record/end-user-form.ts";
import type { ExportRecord } from "../record/export-record.ts";
import { messageForm } from "../record/message-form.ts";
import type { Field } from "../record/record-fields.ts";
import type { RecordForm } from "../record/record-form.ts";
import { byEventType, type EventType, type RecordKind } from "../record/record-kinds.ts";
import { badTimestamp, type BusHeaders, type Envelope, firstProblem, readEnvelope } from "./envelope.ts";
import { countKeys, MAX_DEPTH } from "./json-object.ts";
import {
  countKeyTexts,
  mayBeDeeper,
  needsExactText,
  replaceHalfPairs,
  withoutRepeatedKeys,
} from "./json-text.ts";
import { note } from "./noted-names.ts";
import { type Ignored, type Rejected, rejected } from "./outcome.ts";
import { isAcceptedInstant, type Micros, parseTimestamp } from "./timestamp.ts";
import { unknownFieldsBeside } from "./unknown-fields.ts";
import type { BusPosition, Version } from "./version.ts";

export type Accepted = {
  readonly kind: "accepted";
  readonly record: ExportRecord;
  /** Fields that the specification does not know, as paths of names: dropped, to be counted; at most 20. */
  readonly unknownFields: readonly string[];
  /** Fields with a value outside the documented set, kept, to be counted; at most 20. */
  readonly unusual: readonly string[];
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

/** What the text of an event tells about the way in which its record is rendered. */
type TextTraits = {
  readonly isExact: boolean;
  readonly hasHalfPairs: boolean;
  readonly mayBeTooDeep: boolean;
};
type ReadRecord = (envelope: Envelope, version: Version, traits: TextTraits) => Accepted | Rejected;

function readDate(value: string, field: string): Micros | Rejected {
  const instant = parseTimestamp(value);
  if (instant === undefined) return badTimestamp(value, field, "invalid_timestamp");
  return isAcceptedInstant(instant) ? instant : rejected("date_out_of_range", field);
}

/** The text of `given` with each key once, as parsing has it. */
function exactTextOf(text: string, given: object): string {
  return countKeyTexts(text) === countKeys(given) ? text : withoutRepeatedKeys(text);
}

type Repaired = {
  readonly given: Record<string, unknown>;
  readonly dataText: () => string;
  /** Names of the fields that held half a surrogate pair. */
  readonly changed: readonly string[];
};

function withoutHalfPairs({ data, dataText }: Envelope, fields: readonly Field[]): Repaired {
  const text = replaceHalfPairs(dataText());
  const given = JSON.parse(text) as Record<string, unknown>;
  const isChanged = (name: string): boolean => JSON.stringify(given[name]) !== JSON.stringify(data[name]);
  const changed = fields.map(([name]) => name).filter(isChanged);
  return { given, dataText: () => text, changed };
}

const TOO_DEEP = rejected("nested_too_deeply", `data is nested deeper than ${MAX_DEPTH} levels`);

/**
 * The steps from an event's data to a record that all kinds share: check, compare the subject, read the
 * dates.
 */
function recordReader<Data>(form: RecordForm<Data>): ReadRecord {
  const { schema, idOf, created, updated, finish } = form;
  const noteUnknown = unknownFieldsBeside(form.fields);
  return (envelope, version, { isExact, hasHalfPairs, mayBeTooDeep }) => {
    if (mayBeTooDeep && countKeys(envelope.data) === undefined) return TOO_DEEP;
    const checked = schema.safeParse(envelope.data);
    if (!checked.success) return rejected("invalid_record", firstProblem(checked.error));
    // Only now: an id with half a pair is refused above.
    const repaired = hasHalfPairs ? withoutHalfPairs(envelope, form.fields) : undefined;
    const { given, dataText } = repaired ?? { given: envelope.data, dataText: envelope.dataText };
    const data = repaired === undefined ? checked.data : schema.parse(given);
    const id = idOf(data);
    if (envelope.subject !== null && envelope.subject !== id) {
      return rejected("subject_mismatch", "subject is not the id of the record");
    }
    const dateCreated = readDate(created.of(data), created.name);
    if (typeof dateCreated !== "number") return dateCreated;
    const updatedText = updated?.of(data) ?? null;
    const dateUpdated =
      updated === null || updatedText === null ? dateCreated : readDate(updatedText, updated.name);
    if (typeof dateUpdated !== "number") return dateUpdated;
    const finished = finish(data, {
      clientId: envelope.clientId,
      id,
      dateCreated,
      dateUpdated,
      version,
      given,
      exactText: isExact ? exactTextOf(dataText(), given) : null,
    });
    if (finished.kind === "rejected") return finished;
    const { record, unusual } = finished;
    const unknownFields: string[] = [];
    noteUnknown(given, unknownFields);
    if (repaired === undefined) return { kind: "accepted", record, unknownFields, unusual };
    const all = [...unusual];
    for (const name of repaired.changed) note(all, name);
    return { kind: "accepted", record, unknownFields, unusual: all };
  };
}

const READERS: Readonly<Record<RecordKind, ReadRecord>> = {
  conversation: recordReader(conversationForm),
  message: recordReader(messageForm),
  end_user: recordReader(endUserForm),
};
const READER_OF = byEventType((kind) => READERS[kind]);

/**
 * Decodes, validates, normalises and renders in one pass: turns a bus message of a topic that carries
 * `expected` events into a record for the warehouse, or says why it cannot.
 */
export function processEvent(event: BusEvent, expected: EventType): Outcome {
  if (event.text === null) return { kind: "ignored", reason: "null_value" };
  if (event.text === "") return rejected("empty_value", "the message has an empty value");
  const envelope = readEnvelope(event.text, event.headers);
  if ("kind" in envelope) return envelope;
  if (envelope.type !== expected) {
    return rejected("unexpected_type", `type is not ${expected}`);
  }
  if (event.latestTime !== undefined && envelope.exportedAt > event.latestTime) {
    return rejected("time_in_future", "time is later than the bus allows");
  }
  const version: Version = {
    exportedAt: envelope.exportedAt,
    partition: event.position.partition,
    offset: event.position.offset,
  };
  return READER_OF[expected](envelope, version, {
    isExact: needsExactText(event.text),
    hasHalfPairs: replaceHalfPairs(event.text) !== event.text,
    // Walking all values of a record costs more than parsing it.
    mayBeTooDeep: mayBeDeeper(event.text, MAX_DEPTH),
  });
}
