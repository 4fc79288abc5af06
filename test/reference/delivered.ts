export type HeaderValue = Buffer | string | undefined;

export type Delivered = {
  readonly event: {
    readonly value: Uint8Array | null;
    readonly headers: Readonly<Record<string, HeaderValue>>;
  };
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** In µs; events more than five minutes ahead are rejected. */
  readonly busTime?: bigint;
};

export type RejectionReason =
  | "empty_value"
  | "invalid_envelope"
  | "unexpected_type"
  | "invalid_time"
  | "time_in_future"
  | "invalid_record"
  | "invalid_timestamp"
  | "date_out_of_range"
  | "subject_mismatch"
  | "nested_too_deeply";

export class Refusal extends Error {
  readonly reason: RejectionReason;
  constructor(reason: RejectionReason) {
    super(reason);
    this.reason = reason;
  }
}

/** A replayed dead letter keeps its first place. */
export type Position = { readonly partition: number; readonly offset: number };

export function positionOf({ event, partition, offset }: Delivered): Position {
  const first = { partition: event.headers["dl-partition"], offset: event.headers["dl-offset"] };
  if (first.partition === undefined || first.offset === undefined) return { partition, offset };
  return { partition: Number(first.partition.toString()), offset: Number(first.offset.toString()) };
}
