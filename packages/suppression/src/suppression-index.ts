import { type ExportRecord, type Micros, subjectOf, subjectsOf } from "@conversation-export/domain";
import type { SubjectHash } from "./subject-hash.ts";

type Kind = "conversation" | "message" | "subject";

/** One suppression: the id of a record, or the keyed hash of an identifier of a person. */
export type SuppressionRow = {
  readonly clientId: string;
  /** `end_user`: the id of one, of which no hash is stored yet. */
  readonly kind: Kind | "end_user";
  readonly value: string;
  /** Records that were created earlier are dropped. */
  readonly createdBefore: Micros;
};

type ClientSuppressions = Readonly<Record<Kind, Map<string, Micros>>> & {
  /** The latest `createdBefore` of all. */
  latest: Micros;
};

/** How many answers about identifiers are remembered; a hash costs more than the rest of the question. */
const REMEMBERED = 20_000;

/** All suppressions, ready to be asked about each record. */
export type SuppressionIndex = {
  add(row: SuppressionRow): void;
  /**
   * The suppression that drops the record: it was created before the erasure, and its conversation, its own id or a
   * person whom it names is suppressed. `byOwnId`: it is its own id.
   */
  match(record: ExportRecord): { readonly createdBefore: Micros; readonly byOwnId: boolean } | undefined;
  /** The same for a row of which only the id is known. */
  matchId(clientId: string, kind: "conversation" | "message", id: string, dateCreated: Micros): boolean;
  /** Suppressions by kind. */
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
      // Nearly every record of live traffic is newer than the last erasure.
      if (client === undefined || record.dateCreated >= client.latest) return undefined;
      const drops = (before: Micros | undefined): before is Micros =>
        before !== undefined && record.dateCreated < before;
      if (record.type !== "end_user.exported") {
        const own = client[record.type === "message.exported" ? "message" : "conversation"].get(record.id);
        if (drops(own)) return { createdBefore: own, byOwnId: true };
      }
      if (record.type === "message.exported") {
        const parent = client.conversation.get(record.conversationId);
        if (drops(parent)) return { createdBefore: parent, byOwnId: false };
      }
      if (client.subject.size === 0) return undefined;
      for (const subject of subjectsOf(record)) {
        const before = subjectBefore(client, record.clientId, subject);
        if (!drops(before)) continue;
        const byOwnId =
          record.type === "end_user.exported" && subject === subjectOf("end_user_id", record.id);
        return { createdBefore: before, byOwnId };
      }
      return undefined;
    },
    matchId: (clientId, kind, id, dateCreated) =>
      dateCreated < (clients.get(clientId)?.[kind].get(id) ?? Number.NEGATIVE_INFINITY),
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
