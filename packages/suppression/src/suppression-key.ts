import { hash as digest } from "node:crypto";
import {
  byEventType,
  type ExportRecord,
  subjectOf,
  subjectsOf,
  type SuppressionKey,
} from "@conversation-export/domain";
import type { SubjectHash } from "./subject-hash.ts";

export type KeyHash = (key: SuppressionKey) => readonly [high: number, low: number];

const wordAt = (bytes: string, at: number): number =>
  ((bytes.charCodeAt(at) << 24) |
    (bytes.charCodeAt(at + 1) << 16) |
    (bytes.charCodeAt(at + 2) << 8) |
    bytes.charCodeAt(at + 3)) >>>
  0;

/** Equals the SQL of `suppression-reads.ts`. */
export const keyHash: KeyHash = ({ clientId, kind, value }) => {
  // As text: a buffer costs twice as much.
  const bytes = digest("sha256", `${kind}\0${clientId}\0${value}`, "binary");
  return [wordAt(bytes, 0), wordAt(bytes, 4)];
};

export type RecordKey = SuppressionKey & { readonly byOwnId: boolean };

/** Hashing costs more than all other steps. */
const REMEMBERED = 20_000;

export type KeysOf = (record: ExportRecord) => Generator<RecordKey>;

const NAME_OF = byEventType((kind) => kind);

export const ownKeyOf = ({ clientId, type, id }: ExportRecord): SuppressionKey => ({
  clientId,
  kind: NAME_OF[type],
  value: id,
});

export const createKeysOf = (subjectHash: SubjectHash): KeysOf => {
  const remembered = new Map<string, string>();

  const hashOf = (clientId: string, subject: string): string => {
    const name = `${clientId}\0${subject}`;
    const known = remembered.get(name);
    if (known !== undefined) return known;
    const value = subjectHash.of(clientId, subject);
    if (remembered.size >= REMEMBERED) remembered.clear();
    remembered.set(name, value);
    return value;
  };

  return function* (record) {
    const { clientId } = record;
    const own = ownKeyOf(record);
    if (own.kind !== "end_user") yield { ...own, byOwnId: true };
    const { conversationId } = record;
    if (conversationId !== "" && own.kind !== "conversation")
      yield { clientId, kind: "conversation", value: conversationId, byOwnId: false };
    const prefix = subjectOf("end_user_id", "");
    for (const subject of subjectsOf(record)) {
      const isOwn = own.kind === "end_user" && subject === subjectOf("end_user_id", record.id);
      yield { clientId, kind: "subject", value: hashOf(clientId, subject), byOwnId: isOwn };
      if (!subject.startsWith(prefix)) continue;
      yield { clientId, kind: "end_user", value: subject.slice(prefix.length), byOwnId: isOwn };
    }
  };
};
