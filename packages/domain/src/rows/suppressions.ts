import type { RecordKind } from "../kinds/record-kinds.ts";
import type { Micros } from "../event/timestamp.ts";

/** Permission to write rows, and by what they are judged. */
export type WriteTicket = {
  /** The instant of upload of all rows, by ClickHouse's clock, µs. */
  readonly stamp: Micros;
  /** Of suppressions: what was added before it was made is readable. */
  readonly generation: number;
};

export type SuppressionKey = {
  readonly clientId: string;
  /** `end_user`: one that a writer has found; the next erasure replaces its id by a hash. */
  readonly kind: RecordKind | "subject";
  /** The id of a record, or of a `subject` the keyed hash of an identifier of a person. */
  readonly value: string;
};

/** What was erased and must not come back. */
export type Suppression = SuppressionKey & {
  /** Records created earlier are dropped, µs since the epoch. */
  readonly createdBefore: Micros;
};

/** The suppressions of a client: stored rows, at least as many as suppressions, and the latest instant. */
export type SuppressedClient = { readonly clientId: string; readonly rows: number; readonly latest: Micros };

/** The first 64 bits of a suppression's hash and its instant in seconds, rounded up. false: take no more. */
export type TakeHash = (high: number, low: number, seconds: number) => boolean;

/** How writers read suppressions. Every method rejects when ClickHouse does not answer. */
export type SuppressionReads = {
  /** Clients with suppressions. `since`: only of those added at or after, ms by ClickHouse's clock; null: of all. */
  clients(since: number | null): Promise<readonly SuppressedClient[]>;
  /**
   * Passes 64 bits of hash and the instant of every suppression of `clients` to `take`, possibly repeated;
   * false as soon as `take` returns it. INSERTs show up to five minutes late: subtract that from `since`.
   */
  hashes(
    take: TakeHash,
    options: { readonly since: number | null; readonly clients: readonly string[] },
  ): Promise<boolean>;
  /** `createdBefore` of each key's suppression, in the order of `keys`; 0: there is none. */
  lookUp(keys: readonly SuppressionKey[]): Promise<readonly Micros[]>;
  /**
   * For each key the latest instant of all suppressions with its hash, in seconds rounded up; 0: there is
   * none.
   */
  secondsByHash(keys: readonly SuppressionKey[]): Promise<readonly number[]>;
};
