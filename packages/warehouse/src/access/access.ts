import { LIST_NAMES, LIST_SCOPES } from "@conversation-export/domain";

export const SCOPES = [...LIST_SCOPES, "compliance", "campaigns"] as const;
export type Scope = (typeof SCOPES)[number];

/** Operations with one name share an allowance. */
export const LIMIT_NAMES = [
  ...LIST_NAMES,
  "data_subject_request",
  "data_subject_request_status",
  "sms_trigger",
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];
