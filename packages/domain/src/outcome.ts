/** Why a record is refused: a closed list; each is a metric label and a dead-letter header. */
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
  "refused_by_warehouse",
] as const;

export type RejectionReason = (typeof REJECTION_REASONS)[number];

export type Rejected = {
  readonly kind: "rejected";
  readonly reason: RejectionReason;
  /** What exactly was wrong, for the person who reads the dead letter. Names fields, never their values. */
  readonly detail: string;
};

/** A message without a value, such as a tombstone: there is nothing to store, and nothing is lost. */
export type Ignored = { readonly kind: "ignored"; readonly reason: "null_value" };

export function rejected(reason: RejectionReason, detail: string): Rejected {
  return { kind: "rejected", reason, detail };
}
