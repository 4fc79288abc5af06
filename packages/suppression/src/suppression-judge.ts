import type { ExportRecord, Micros } from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { FoundRows } from "./found-rows.ts";
import { secondsOf, type SuppressionIndex } from "./suppression-index.ts";
import { type KeysOf, ownKeyOf, type RecordKey, type SuppressionKey } from "./suppression-key.ts";

export type SuppressionLookUp = {
  /** `createdBefore` of each key's suppression; 0: there is none. */
  lookUp(keys: readonly SuppressionKey[]): Promise<readonly Micros[]>;
  /**
   * For each key the latest instant of all suppressions with its hash, in seconds rounded up; 0: there is
   * none.
   */
  secondsByHash(keys: readonly SuppressionKey[]): Promise<readonly number[]>;
};

/** Decides about records: memory says which may be suppressed, ClickHouse which are. */
export type SuppressionJudge = {
  /**
   * Which records are suppressed. `noting`: notes the ids of those that are for another reason than their own
   * id.
   * @throws ServiceError `suppressions_behind`, retryable, when ClickHouse does not show what it has shown
   * before
   */
  judge(records: readonly ExportRecord[], noting: boolean): Promise<boolean[]>;
};

const nameOf = ({ clientId, kind, value }: SuppressionKey): string => `${clientId}\0${kind}\0${value}`;

export const createSuppressionJudge = (deps: {
  readonly index: SuppressionIndex;
  readonly keysOf: KeysOf;
  readonly store: SuppressionLookUp;
  readonly found: FoundRows;
  /** Called with the number of records before they are looked up. */
  readonly onLookUp: (records: number) => void;
  /** Called when ids were noted: what was judged before may name them. */
  readonly onFound: () => void;
}): SuppressionJudge => {
  const { index, keysOf, store, found } = deps;

  const lookUp = async (records: readonly ExportRecord[]): Promise<Map<string, Micros>> => {
    deps.onLookUp(records.length);
    // So that ClickHouse shows what this process knows.
    await found.stored();
    const keys = new Map<string, SuppressionKey>();
    for (const record of records) for (const key of keysOf(record)) keys.set(nameOf(key), key);
    const instants = await store.lookUp([...keys.values()]);
    return new Map(Array.from(keys.keys(), (name, at) => [name, instants[at] ?? 0]));
  };

  const dropping = (
    record: ExportRecord,
    before: (name: string) => Micros,
  ): [RecordKey, Micros] | undefined => {
    for (const key of keysOf(record)) {
      const createdBefore = before(nameOf(key));
      if (record.dateCreated < createdBefore) return [key, createdBefore];
    }
    return undefined;
  };

  /**
   * A hash in memory without a suppression to it is that of another value, unless ClickHouse shows too
   * little.
   */
  const checkWhole = async (
    records: readonly ExportRecord[],
    before: (name: string) => Micros,
  ): Promise<void> => {
    const unexplained: { readonly key: SuppressionKey; readonly seconds: number }[] = [];
    for (const record of records) {
      if (dropping(record, before) !== undefined) continue;
      for (const key of keysOf(record)) {
        const seconds = index.heldAt(key);
        // The ids of end users are replaced by hashes, which are among the keys.
        if (key.kind === "end_user" || record.dateCreated >= seconds * 1_000_000) continue;
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

  return {
    judge: async (records, noting) => {
      const suspects = new Set(records.filter(index.mayDrop));
      const noted = new Map<string, Micros>();
      const stored = suspects.size === 0 ? noted : await lookUp([...suspects]);
      const storedBefore = (name: string): Micros => stored.get(name) ?? 0;
      await checkWhole([...suspects], storedBefore);
      const answers = records.map((record) => {
        if (!suspects.has(record) && noted.size === 0) return false;
        const drop = dropping(record, (name) => Math.max(storedBefore(name), noted.get(name) ?? 0));
        if (drop === undefined) return false;
        const [{ byOwnId }, createdBefore] = drop;
        // An older version that did not name the person may be stored, or records that name only this id.
        if (noting && !byOwnId) {
          const row = { ...ownKeyOf(record), createdBefore };
          index.add(row);
          found.add(row);
          noted.set(nameOf(row), createdBefore);
        }
        return true;
      });
      if (noted.size > 0) deps.onFound();
      return answers;
    },
  };
};
