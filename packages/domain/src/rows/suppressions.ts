import type { RecordKind } from "../kinds/record-kinds.ts";
import type { Micros } from "../event/timestamp.ts";

export type WriteTicket = {
  /** Instant of upload of all rows, by ClickHouse's clock. */
  readonly stamp: Micros;
  /** Suppressions added before it began are readable. */
  readonly generation: number;
};

export type SuppressionKey = {
  readonly clientId: string;
  /** `end_user`: found by a writer; the next erasure replaces its id by a hash. */
  readonly kind: RecordKind | "subject";
  /** A record's id, or the keyed hash of a person's identifier. */
  readonly value: string;
};

export type Suppression = SuppressionKey & {
  /** Records created earlier are dropped. */
  readonly createdBefore: Micros;
};

/** `rows`: stored, at least as many as suppressions. */
export type SuppressedClient = { readonly clientId: string; readonly rows: number; readonly latest: Micros };

/** 64 bits of hash, and seconds rounded up; false: take no more. */
export type TakeHash = (high: number, low: number, seconds: number) => boolean;

/** Methods reject when ClickHouse does not answer. */
export type SuppressionReads = {
  /** `since`: added then or later, ms by ClickHouse's clock; null: all. */
  clients(since: number | null): Promise<readonly SuppressedClient[]>;
  /** May repeat; false once `take` returns it. INSERTs show up to five minutes late: subtract that from `since`. */
  hashes(
    take: TakeHash,
    options: { readonly since: number | null; readonly clients: readonly string[] },
  ): Promise<boolean>;
  /** In the order of `keys`; 0: none. */
  lookUp(keys: readonly SuppressionKey[]): Promise<readonly Micros[]>;
  /** Latest instant of all suppressions with each key's hash, seconds rounded up; 0: none. */
  secondsByHash(keys: readonly SuppressionKey[]): Promise<readonly number[]>;
};
