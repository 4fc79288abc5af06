import { createHash } from "node:crypto";
import type { Admin, BusMessage, Connection } from "@conversation-export/bus";
import { readTopics } from "../system/read-topics.ts";
import type { ExpectedDeadLetter } from "./reference.ts";

export type ReadDeadLetters = {
  readonly byReason: ReadonlyMap<string, number>;
  /** A batch delivered again sends its dead letters again. */
  readonly repeated: number;
  readonly problems: readonly string[];
};

const headerOf = (message: BusMessage, name: string): string => String(message.headers[name] ?? "");

export const readDeadLetters = async (
  deps: { readonly connection: Connection; readonly admin: Admin },
  topics: readonly string[],
  expected: readonly ExpectedDeadLetter[],
): Promise<ReadDeadLetters> => {
  const deadLetterTopics = topics.map((topic) => `${topic}.dead-letter`);
  const bounds = await Promise.all(deadLetterTopics.map((topic) => deps.admin.fetchOffsets(topic)));
  const total = bounds.flat().reduce((sum, { start, end }) => sum + end - start, 0);
  const deadLetters = await readTopics(deps.connection, deadLetterTopics, total);

  const wantedAt = new Map(expected.map((one) => [`${one.topic}/${one.partition}/${one.offset}`, one]));
  const found = new Set<string>();
  const problems: string[] = [];
  const byReason = new Map<string, number>();
  for (const deadLetter of deadLetters) {
    const reason = headerOf(deadLetter, "dl-reason");
    const place = ["dl-topic", "dl-partition", "dl-offset"]
      .map((name) => headerOf(deadLetter, name))
      .join("/");
    if (!found.has(place)) byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
    found.add(place);
    const wanted = wantedAt.get(place);
    if (wanted === undefined) {
      problems.push(`unexpected: ${place} (${reason}: ${headerOf(deadLetter, "dl-detail")})`);
      continue;
    }
    if (reason !== wanted.reason) problems.push(`${place} has reason ${reason} instead of ${wanted.reason}`);
    if (deadLetter.topic !== `${wanted.topic}.dead-letter`)
      problems.push(`${place} waits in ${deadLetter.topic}`);
    const digest = createHash("sha256")
      .update(deadLetter.value ?? "")
      .digest("hex");
    if (digest !== wanted.digest) problems.push(`${place} has another payload`);
  }
  for (const [place, { reason }] of wantedAt)
    if (!found.has(place)) problems.push(`missing: ${place} (${reason})`);
  return {
    byReason: new Map([...byReason].sort(([, a], [, b]) => b - a)),
    repeated: deadLetters.length - found.size,
    problems,
  };
};
