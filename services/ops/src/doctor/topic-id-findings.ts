import { LIST_NAMES } from "@conversation-export/domain";
import type { KafkaServers } from "@conversation-export/runtime";
import { createWatermarkStore, type TopicIdentity } from "@conversation-export/warehouse";
import type { EventTopics, WarehouseConfig } from "../config.ts";
import { withAdmin, withWarehouse } from "../connect/connections.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";

const AREA = "Kafka";
const { ok, warning, problem } = findingsOf(AREA);

/** After being created anew. */
const SHOWN_MS = 7 * 86_400_000;

const READ_ANEW =
  "if that was not intended, find out who deleted it; what ingest had not read must be exported again: docs/runbooks/TopicCreatedAnew.md";

/** `now`: epoch ms. */
export const topicIdFindings = (
  topics: readonly {
    readonly topic: string;
    readonly id: string | null;
    readonly known: TopicIdentity | undefined;
  }[],
  now: number,
): Findings => {
  if (topics.some(({ id }) => id === null)) {
    return [
      warning(
        "topic ids",
        "these brokers give none",
        "update Kafka to 2.8 or later: here a topic that is deleted and created anew is not noticed, and its first messages may not be read",
      ),
    ];
  }
  const found = topics.flatMap(({ topic, id, known }): Finding[] => {
    if (known !== undefined && known.topicId !== id)
      return [
        problem(
          `topic ${topic}`,
          "was deleted and created anew, and ingest has not noticed it",
          `see that ingest runs, which reads it from its beginning; ${READ_ANEW}`,
        ),
      ];
    const createdAnew = known?.createdAnew ?? null;
    if (createdAnew === null || now - createdAnew > SHOWN_MS) return [];
    const at = new Date(createdAnew).toISOString();
    const read = `was deleted and created anew: noticed at ${at}, read from its beginning`;
    return [warning(`topic ${topic}`, read, READ_ANEW)];
  });
  if (found.length > 0) return found;
  const isEachKnown = topics.every(({ known }) => known !== undefined);
  return [
    ok("topic ids", isEachKnown ? "those under which ingest reads" : "ingest has not seen all topics yet"),
  ];
};

/** Other checks report absent servers. */
export const identityFindings = async (
  bus: KafkaServers,
  topics: EventTopics,
  warehouse: WarehouseConfig,
): Promise<Findings> => {
  const found = await attempt(AREA, "topic ids", async () => {
    const [ids, known] = await Promise.all([
      withAdmin(bus, async (admin) => {
        const there = new Set(await admin.listTopics());
        // Another check names missing ones.
        const present = Object.values(topics).filter((topic) => there.has(topic));
        return new Map(
          await Promise.all(present.map(async (topic) => [topic, await admin.fetchTopicId(topic)] as const)),
        );
      }),
      withWarehouse(warehouse, (session) => createWatermarkStore({ session }).loadTopics()),
    ]);
    return topicIdFindings(
      LIST_NAMES.flatMap((list) => {
        const topic = topics[list];
        const id = ids.get(topic);
        return id === undefined ? [] : { topic, id, known: known[list] };
      }),
      Date.now(),
    );
  });
  return found.filter(({ state }) => state !== "away");
};
