import {
  type ExportRecord,
  type Micros,
  KIND_OF,
  RECORD_KINDS,
  subjectOf,
  subjectsOf,
} from "@conversation-export/domain";
import type { SubjectHash } from "./subject-hash.ts";

type Kind = "conversation" | "message" | "subject";

/** One suppression: the id of a record, or the keyed hash of an identifier of a person. */
export type SuppressionRow = {
  readonly clientId: string;
  /** `end_user` is the id of an end user whose hash is not stored yet. */
  readonly kind: Kind | "end_user";
  readonly value: string;
  /** Records created earlier are dropped, µs since the epoch. */
  readonly createdBefore: Micros;
};

type ClientSuppressions = Readonly<Record<Kind, Map<string, Micros>>> & {
  /** The latest `createdBefore` of the client. */
  latest: Micros;
};

/** Answers about identifiers that are remembered: making the hash costs more than all other steps. */
const REMEMBERED = 20_000;

/** All suppressions in memory. */
export type SuppressionIndex = {
  add(row: SuppressionRow): void;
  /**
   * The suppression that drops the record; undefined when none does. One of its own id, of its conversation
   * or of a person whom it names counts when the record was created before the erasure. `byOwnId`: it is of
   * its own id.
   */
  match(record: ExportRecord): { readonly createdBefore: Micros; readonly byOwnId: boolean } | undefined;
  /** Number of suppressions by kind. */
  counts(): Readonly<Record<Kind, number>>;
};

export const createSuppressionIndex = (deps: { readonly hash: SubjectHash }): SuppressionIndex => {
  const { hash } = deps;
  const clients = new Map<string, ClientSuppressions>();
  const bySubject = new Map<string, Micros>();

  const subjectBefore = (client: ClientSuppressions, clientId: string, subject: string): Micros => {
    const name = `${clientId}\0${subject}`;
    const known = bySubject.get(name);
    if (known !== undefined) return known;
    const before = client.subject.get(hash.of(clientId, subject)) ?? 0;
    if (bySubject.size >= REMEMBERED) bySubject.clear();
    bySubject.set(name, before);
    return before;
  };

  return {
    add: ({ clientId, createdBefore, ...row }) => {
      const [kind, value] =
        row.kind === "end_user"
          ? (["subject", hash.of(clientId, subjectOf("end_user_id", row.value))] as const)
          : [row.kind, row.value];
      let client = clients.get(clientId);
      if (client === undefined) {
        client = { conversation: new Map(), message: new Map(), subject: new Map(), latest: 0 };
        clients.set(clientId, client);
      }
      client.latest = Math.max(client.latest, createdBefore);
      const former = client[kind].get(value) ?? 0;
      if (createdBefore > former) client[kind].set(value, createdBefore);
      if (kind === "subject") bySubject.clear();
    },
    match: (record) => {
      const client = clients.get(record.clientId);
      // True for nearly all live traffic, which is newer than the last erasure.
      if (client === undefined || record.dateCreated >= client.latest) return undefined;
      const drops = (before: Micros | undefined): before is Micros =>
        before !== undefined && record.dateCreated < before;
      const { suppression } = KIND_OF[record.type];
      if (suppression !== "end_user") {
        const own = client[suppression].get(record.id);
        if (drops(own)) return { createdBefore: own, byOwnId: true };
      }
      if (record.type === RECORD_KINDS.message.type) {
        const parent = client.conversation.get(record.conversationId);
        if (drops(parent)) return { createdBefore: parent, byOwnId: false };
      }
      if (client.subject.size === 0) return undefined;
      for (const subject of subjectsOf(record)) {
        const before = subjectBefore(client, record.clientId, subject);
        if (!drops(before)) continue;
        const byOwnId = suppression === "end_user" && subject === subjectOf("end_user_id", record.id);
        return { createdBefore: before, byOwnId };
      }
      return undefined;
    },
    counts: () => {
      const counts = { conversation: 0, message: 0, subject: 0 };
      for (const client of clients.values()) {
        counts.conversation += client.conversation.size;
        counts.message += client.message.size;
        counts.subject += client.subject.size;
      }
      return counts;
    },
  };
};
