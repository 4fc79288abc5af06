/** Closed: metric labels and dead-letter headers. */
export const REJECTION_REASONS = [
  "empty_value",
  "invalid_envelope",
  "unexpected_type",
  "invalid_time",
  "time_in_future",
  "invalid_record",
  "invalid_timestamp",
  "date_out_of_range",
  "subject_mismatch",
  "nested_too_deeply",
  "refused_by_warehouse",
  "unreadable_batch",
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

export type Rejected = {
  readonly kind: "rejected";
  readonly reason: RejectionReason;
  /** Names fields, never their values. */
  readonly detail: string;
};

/** No data is lost: a tombstone, or an erased record. */
export type Ignored = { readonly kind: "ignored"; readonly reason: "null_value" | "suppressed" };

export function rejected(reason: RejectionReason, detail: string): Rejected {
  return { kind: "rejected", reason, detail };
}
