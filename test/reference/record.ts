import { Refusal } from "./delivered.ts";
import {
  depthOf,
  type Exact,
  type ExactObject,
  isList,
  isNumber,
  isObject,
  member,
  printExact,
  readable,
} from "./exact-json.ts";
import type { Field, FieldKind } from "./fields.ts";
import { HANDOFF } from "./fields.ts";
import { hasForm, isInRange, readInstant, writeUtc } from "./instant.ts";

export type Entry = {
  /** Specification 2.1, handoffs rule 5; the two kinds of id differ. */
  readonly target: { readonly kind: "handoff_id" | "id"; readonly text: string };
  readonly attempt: string;
  readonly dateCreated: bigint;
  readonly json: string;
};

export type Export = {
  readonly id: string;
  readonly dateCreated: bigint;
  readonly dateUpdated: bigint;
  readonly conversationId: string | null;
  readonly texts: ReadonlyMap<string, string>;
  readonly handoffs: readonly Entry[];
};

const INT32 = 2 ** 31;
const isDouble = (value: Exact): boolean => isNumber(value) && Number.isFinite(Number(value.text));
const isInt32 = (value: Exact): boolean =>
  isNumber(value) &&
  Number.isInteger(Number(value.text)) &&
  Number(value.text) >= -INT32 &&
  Number(value.text) < INT32;
const holdsDoubles = (value: Exact): boolean => {
  if (isNumber(value)) return isDouble(value);
  if (isList(value)) return value.every(holdsDoubles);
  // Of a repeated name only the last value is read.
  return !isObject(value) || [...new Map(value.members).values()].every(holdsDoubles);
};

const FITS: Readonly<Record<FieldKind, (value: Exact) => boolean>> = {
  text: (value) => typeof value === "string",
  number: isDouble,
  integer: isInt32,
  flag: (value) => typeof value === "boolean",
  texts: (value) => isList(value) && value.every((item) => item === null || typeof item === "string"),
  objects: (value) => isList(value) && value.every(isObject),
  handoffs: (value) => isList(value) && value.every(isObject),
  members: isObject,
  given: (value) => isObject(value) && holdsDoubles(value),
  object: (value) => isObject(value) && holdsDoubles(value),
  id: (value) => typeof value === "string" && value !== "",
  created: (value) => typeof value === "string",
  updated: (value) => typeof value === "string",
  uploaded: () => true,
};

const MAX_DEPTH = 200;

const REQUIRED: ReadonlySet<FieldKind> = new Set(["id", "created"]);

/** For null or absent. */
const EMPTY: Partial<Record<FieldKind, string>> = { texts: "[]", objects: "[]", members: "{}", object: "{}" };

function checkKinds(data: ExactObject, fields: readonly Field[]): void {
  for (const [name, kind, inner = []] of fields) {
    const value = member(data, name) ?? null;
    if (value === null ? REQUIRED.has(kind) : !FITS[kind](value)) throw new Refusal("invalid_record");
    for (const one of isList(value) ? value : [value]) if (isObject(one)) checkKinds(one, inner);
  }
}

/** Objects with known fields show only these. */
function printField(data: ExactObject, [name, kind, inner]: Field): string {
  const value = member(data, name) ?? null;
  if (value === null) return EMPTY[kind] ?? "null";
  // The specification's integer has no fraction or exponent.
  if (kind === "integer" && isNumber(value)) return String(Number(value.text));
  if (inner === undefined) return printExact(readable(value));
  const print = (one: Exact): string =>
    isObject(one)
      ? `{${inner.map((field) => `"${field[0]}":${printField(one, field)}`).join(",")}}`
      : printExact(readable(one));
  return isList(value) ? `[${value.map(print).join(",")}]` : print(value);
}

function readDate(value: Exact | undefined): bigint {
  const instant = typeof value === "string" ? readInstant(value) : undefined;
  if (instant === undefined) {
    throw new Refusal(
      typeof value === "string" && hasForm(value) ? "date_out_of_range" : "invalid_timestamp",
    );
  }
  if (!isInRange(instant)) throw new Refusal("date_out_of_range");
  return instant;
}

function readEntry(entry: ExactObject): Entry {
  const dateCreated = readDate(member(entry, "date_created"));
  const handoffId = member(entry, "handoff_id") ?? null;
  const attempt = member(entry, "id");
  const text = handoffId ?? attempt;
  if (typeof attempt !== "string" || typeof text !== "string" || text === "")
    throw new Refusal("invalid_record");
  const members = HANDOFF.map(([name, kind]) => {
    const printed =
      kind === "created" ? `"${writeUtc(dateCreated)}"` : printExact(readable(member(entry, name) ?? null));
    return `"${name}":${printed}`;
  });
  const target = { kind: handoffId === null ? "id" : "handoff_id", text } as const;
  return { target, attempt, dateCreated, json: `{${members.join(",")}}` };
}

/** @throws Refusal */
export function readExport(data: ExactObject, fields: readonly Field[], subject: string | null): Export {
  if (depthOf(data) > MAX_DEPTH) throw new Refusal("nested_too_deeply");
  checkKinds(data, fields);
  const entries = member(data, "handoffs");
  const items =
    fields.some(([, kind]) => kind === "handoffs") && isList(entries) ? entries.filter(isObject) : [];
  for (const item of items) checkKinds(item, HANDOFF);

  const id = member(data, fields[0]?.[0] ?? "");
  if (typeof id !== "string" || (subject !== null && subject !== id)) throw new Refusal("subject_mismatch");
  const named = (kind: FieldKind): string => fields.find(([, other]) => other === kind)?.[0] ?? "";
  const dateCreated = readDate(member(data, named("created")));
  const updated = member(data, named("updated")) ?? null;
  const dateUpdated = updated === null || updated === "" ? dateCreated : readDate(updated);
  const conversationId = fields.some(([name]) => name === "conversation_id")
    ? member(data, "conversation_id")
    : null;

  const texts = new Map<string, string>();
  for (const field of fields) {
    const [name, kind] = field;
    if (kind === "uploaded") continue;
    if (kind === "created") texts.set(name, `"${writeUtc(dateCreated)}"`);
    else if (kind === "updated") texts.set(name, `"${writeUtc(dateUpdated)}"`);
    else if (kind === "handoffs") texts.set(name, "[]");
    else texts.set(name, printField(data, field));
  }
  return {
    id,
    dateCreated,
    dateUpdated,
    conversationId: typeof conversationId === "string" ? conversationId : null,
    texts,
    handoffs: items.map(readEntry),
  };
}
