import type { UserQuota } from "@conversation-export/warehouse";
import { type Finding, findingsOf } from "./finding.ts";

const NAME = "quota of reader";
const { ok, warning } = findingsOf("ClickHouse");

const ADVICE =
  "export-api sends the client's id with each query: KEYED BY client_key, user_name (`keyed` in users.xml), without execution_time";

/** One client must not use up all clients' quota. */
export const quotaFinding = (quotas: readonly UserQuota[]): Finding => {
  const wrong = quotas.flatMap(({ name, byKey, ofTime }) => [
    ...(byKey ? [] : [`all clients share ${name}`]),
    ...(ofTime ? [`${name} has execution_time, which runs while a slow client does not read`] : []),
  ]);
  if (wrong.length > 0) return warning(NAME, wrong.join("; "), ADVICE);
  return ok(NAME, quotas.length === 0 ? "there is none" : "each client has its own");
};
