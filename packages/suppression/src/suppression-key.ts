import { hash as digest } from "node:crypto";
import {
  byEventType,
  CONVERSATION_KIND,
  type ExportRecord,
  PERSON_KINDS,
  RECORD_KINDS,
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

type RecordKey = SuppressionKey & { readonly byOwnId: boolean };

/** Hashing costs more than all other steps. */
const REMEMBERED = 20_000;

export type KeysOf = (record: ExportRecord) => Generator<RecordKey>;

const NAME_OF = byEventType((kind) => kind);
const ID_NAMES = byEventType((kind) => RECORD_KINDS[kind].idNames);
const PERSON_IDS = PERSON_KINDS.map(({ kind, idNames }) => ({ kind, prefix: subjectOf(idNames, "") }));

export const ownKeyOf = ({ clientId, type, id }: ExportRecord): SuppressionKey => ({
  clientId,
  kind: NAME_OF[type],
  value: id,
});

/** Found by a writer; hashes of the same persons are among the keys. */
export const isPersonId = ({ kind }: SuppressionKey): boolean => PERSON_IDS.some((one) => one.kind === kind);

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
    const { clientId, conversationId, type, id } = record;
    const own = ownKeyOf(record);
    const idNames = ID_NAMES[type];
    if (idNames === null) yield { ...own, byOwnId: true };
    if (conversationId !== "" && own.kind !== CONVERSATION_KIND)
      yield { clientId, kind: CONVERSATION_KIND, value: conversationId, byOwnId: false };
    const ownSubject = idNames === null ? null : subjectOf(idNames, id);
    for (const subject of subjectsOf(record)) {
      const byOwnId = subject === ownSubject;
      yield { clientId, kind: "subject", value: hashOf(clientId, subject), byOwnId };
      for (const { kind, prefix } of PERSON_IDS)
        if (subject.startsWith(prefix))
          yield { clientId, kind, value: subject.slice(prefix.length), byOwnId };
    }
  };
};
