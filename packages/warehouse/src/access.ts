/** What a key may be allowed to do. */
export const SCOPES = ["export", "end_users", "compliance", "campaigns"] as const;
export type Scope = (typeof SCOPES)[number];

/** Operations that share a name share one allowance of requests. */
export const LIMIT_NAMES = [
  "conversations",
  "messages",
  "end_users",
  "data_subject_request",
  "sms_trigger",
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];
