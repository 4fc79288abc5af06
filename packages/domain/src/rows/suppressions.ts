import type { RecordKind } from "../kinds/record-kinds.ts";
import type { Micros } from "../event/timestamp.ts";

export type WriteTicket = {
  /** Of all rows, by ClickHouse's clock. */
  readonly stamp: Micros;
  /** Suppressions added before it are readable. */
  readonly generation: number;
};

export type SuppressionKey = {
  readonly clientId: string;
  /** Ids of persons are found by writers; the next erasure replaces them by hashes. */
  readonly kind: RecordKind | "subject";
  readonly value: string;
};

export type Suppression = SuppressionKey & {
  /** Records created earlier are dropped. */
  readonly createdBefore: Micros;
};

/** `rows`: at least as many as suppressions. */
export type SuppressedClient = { readonly clientId: string; readonly rows: number; readonly latest: Micros };

/** 64 bits of hash, seconds rounded up; false: no more. */
export type TakeHash = (high: number, low: number, seconds: number) => boolean;

/** Reject when ClickHouse does not answer. */
export type SuppressionReads = {
  /** `since`: added then or later, ms by ClickHouse's clock; null: all. */
  clients(since: number | null): Promise<readonly SuppressedClient[]>;
  /** May repeat; false once `take` is. INSERTs show up to five minutes late: subtract that from `since`. */
  hashes(
    take: TakeHash,
    options: { readonly since: number | null; readonly clients: readonly string[] },
  ): Promise<boolean>;
  /** In the order of `keys`; 0: none. */
  lookUp(keys: readonly SuppressionKey[]): Promise<readonly Micros[]>;
  /** Latest instant of each key's hash, seconds rounded up; 0: none. */
  secondsByHash(keys: readonly SuppressionKey[]): Promise<readonly number[]>;
};
