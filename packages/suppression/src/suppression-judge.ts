import type {
  ExportRecord,
  Micros,
  Suppression,
  SuppressionKey,
  SuppressionReads,
} from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import { secondsOf, type SuppressionIndex } from "./suppression-index.ts";
import { isPersonId, type KeysOf, ownKeyOf } from "./suppression-key.ts";

/**
 * Memory says which may be suppressed, ClickHouse which are. `noting` stores ids of records that another key drops
 * up to a later instant.
 * @throws ServiceError `suppressions_behind`, retryable: a replica is behind
 */
export type SuppressionJudge = (records: readonly ExportRecord[], noting: boolean) => Promise<boolean[]>;

const nameOf = ({ clientId, kind, value }: SuppressionKey): string => `${clientId}\0${kind}\0${value}`;

export const createSuppressionJudge = (deps: {
  readonly index: SuppressionIndex;
  readonly keysOf: KeysOf;
  readonly store: Pick<SuppressionReads, "lookUp" | "secondsByHash"> & {
    addFound(found: readonly Suppression[]): Promise<void>;
  };
  readonly onLookUp: (records: number) => void;
  readonly onFound: () => void;
}): SuppressionJudge => {
  const { index, keysOf, store } = deps;

  const lookUp = async (records: readonly ExportRecord[]): Promise<Map<string, Micros>> => {
    deps.onLookUp(records.length);
    const keys = new Map<string, SuppressionKey>();
    for (const record of records) for (const key of keysOf(record)) keys.set(nameOf(key), key);
    const instants = await store.lookUp([...keys.values()]);
    return new Map(Array.from(keys.keys(), (name, at) => [name, instants[at] ?? 0]));
  };

  const judgementOf = (record: ExportRecord, before: (name: string) => Micros) => {
    let byOwnId: Micros = 0;
    let byOthers: Micros = 0;
    for (const key of keysOf(record)) {
      const createdBefore = before(nameOf(key));
      if (key.byOwnId) byOwnId = Math.max(byOwnId, createdBefore);
      else byOthers = Math.max(byOthers, createdBefore);
    }
    return { byOwnId, byOthers, drops: record.dateCreated < Math.max(byOwnId, byOthers) };
  };

  /** A hash without a suppression is another value's, unless ClickHouse shows too little. */
  const checkWhole = async (
    records: readonly ExportRecord[],
    before: (name: string) => Micros,
  ): Promise<void> => {
    const unexplained: { readonly key: SuppressionKey; readonly seconds: number }[] = [];
    for (const record of records) {
      if (judgementOf(record, before).drops) continue;
      for (const key of keysOf(record)) {
        const seconds = index.heldAt(key);
        if (isPersonId(key) || record.dateCreated >= seconds * 1_000_000) continue;
        if (secondsOf(before(nameOf(key))) < seconds) unexplained.push({ key, seconds });
      }
    }
    if (unexplained.length === 0) return;
    const shown = await store.secondsByHash(unexplained.map(({ key }) => key));
    if (unexplained.every(({ seconds }, at) => (shown[at] ?? 0) >= seconds)) return;
    throw new ServiceError(
      "suppressions_behind",
      "ClickHouse does not show a suppression that it has shown before: a replica is behind, or rows were removed",
      { retryable: true },
    );
  };

  return async (records, noting) => {
    const suspects = new Set(records.filter(index.mayDrop));
    if (suspects.size === 0) return records.map(() => false);
    const stored = await lookUp([...suspects]);
    await checkWhole([...suspects], (name) => stored.get(name) ?? 0);
    const found = new Map<string, Suppression>();
    const before = (name: string): Micros =>
      Math.max(stored.get(name) ?? 0, found.get(name)?.createdBefore ?? 0);
    const answer = (record: ExportRecord): boolean => {
      if (!suspects.has(record) && found.size === 0) return false;
      const { byOwnId, byOthers, drops } = judgementOf(record, before);
      // Versions without the person, or records that name only this id, may be stored.
      if (drops && noting && byOthers > byOwnId) {
        const own = ownKeyOf(record);
        found.set(nameOf(own), { ...own, createdBefore: byOthers });
        isMore = true;
      }
      return drops;
    };
    let isMore: boolean;
    let answers: boolean[];
    do {
      isMore = false;
      answers = records.map(answer);
      // A record may name one that is found after it.
    } while (isMore);
    if (found.size === 0) return answers;
    const rows = [...found.values()];
    await store.addFound(rows);
    for (const row of rows) index.add(row);
    deps.onFound();
    return answers;
  };
};
