import type { SampleTotals } from "../sample/index.ts";
import type { ReadDeadLetters } from "./dead-letters.ts";
import { count, megabytes, table } from "./print.ts";
import type { CompareAnswer } from "./reference.ts";

/** In bytes; `raw`: before compression. */
export type Stored = { readonly disk: number; readonly raw: number };

export const describeSample = (totals: SampleTotals, clients: number, lateShare: number): string => {
  const { accepted, records, duplicates, poison, nulls } = totals;
  const exports = accepted.conversation + accepted.message + accepted.end_user;
  const again = exports - duplicates - records.conversation - records.message - records.end_user;
  return [
    `  ${count(records.conversation)} conversations, ${count(records.message)} messages and ${count(records.end_user)} end users of ${clients} clients.`,
    `  That makes ${count(totals.events)} events, among them ${count(again)} later exports of a record, ${count(duplicates)} duplicates,`,
    `  ${count(poison)} poison records and ${count(nulls)} without a value; ${lateShare * 100} % come late or out of order.`,
  ].join("\n");
};

export const describeComparison = ({ lists, endUsers }: CompareAnswer): string => {
  const verdict = (equal: boolean): string => (equal ? "equal" : "DIFFERENT");
  const lines = table([
    ["client", "list", "sent", "read", "checksum sent", "checksum read", ""],
    ...lists.map(({ client, list, expected, read, problems }) => [
      client,
      list,
      expected.records,
      read.records,
      expected.checksum,
      read.checksum,
      verdict(problems === 0),
    ]),
    ...endUsers.map(({ client, expected, read, problems }) => [
      client,
      "end users (in their table)",
      expected.records,
      read.records,
      expected.checksum,
      read.checksum,
      verdict(problems === 0),
    ]),
  ]);
  const differences = lists
    .filter(({ problems }) => problems > 0)
    .flatMap(({ client, list, problems, examples }) => [
      `  ${client}, ${list}: ${count(problems)} differences, such as`,
      ...examples.map((example) => `    ${example}`),
    ]);
  return [lines, ...differences].join("\n");
};

export const describeDeadLetters = (
  { byReason, repeated, problems }: ReadDeadLetters,
  expected: number,
): string => {
  const found = [...byReason.values()].reduce((sum, n) => sum + n, 0);
  return [
    `  ${count(expected)} sent, ${count(found)} found:`,
    table([...byReason].map(([reason, deadLetters]) => [`  ${reason}`, deadLetters])),
    ...(repeated === 0 ? [] : [`  ${count(repeated)} came twice, since a batch was delivered again.`]),
    ...problems.slice(0, 5).map((problem) => `  DIFFERENT: ${problem}`),
  ].join("\n");
};

/** No times: producer, reference and servers share the machine. */
export const describeRun = (
  totals: SampleTotals,
  run: { producedBytes: number; answer: CompareAnswer; stored: Stored },
): string => {
  const { producedBytes, answer, stored } = run;
  const read = answer.lists.reduce((sum, list) => sum + list.read.records, 0);
  const { conversation, message, end_user } = totals.records;
  return table([
    ["produced", totals.events, "events", megabytes(producedBytes)],
    [
      "stored",
      conversation + message + end_user,
      "records",
      `${megabytes(stored.disk)} on disk, ${megabytes(stored.raw)} before compression`,
    ],
    ["read", read, "records", `${megabytes(answer.bytes)} in ${count(answer.pages)} pages`],
  ]);
};

export const describeRequests = (envFile: string, since: string, conversation: string): string =>
  [
    `. ${envFile}; auth="Authorization: Bearer $EXPORT_API_KEY"; export_url="$EXPORT_API_URL/v2/export"`,
    `curl -s -H "$auth" "$export_url/conversations?created_since=${since}&page_size=100" | head -c 1500`,
    `curl -s -H "$auth" "$export_url/conversations?updated_since=${since}&page_size=100" | tail -c 300`,
    `curl -s -H "$auth" "$export_url/messages?created_since=${since}&conversation_id=${conversation}"`,
    `curl -s "$INGEST_METRICS_URL" | grep ^conversation_export_ingest_`,
  ]
    .map((line) => `  ${line}`)
    .join("\n");
