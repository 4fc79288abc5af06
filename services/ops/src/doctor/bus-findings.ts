import type { Admin } from "@conversation-export/bus";
import { deadLetterTopic } from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import type { BusConfig, ServiceSettings } from "../config.ts";
import { fetchLag, withAdmin } from "../connect/connections.ts";
import { innermostMessage } from "../explain/explain.ts";
import { wantedTopics } from "../setup/topics.ts";
import { applying, attempt, type Finding, type Findings, findingsOf } from "./finding.ts";
import { type TopicFacts, topicFindings, type TopicKind } from "./topic-findings.ts";

const AREA = "Kafka";
const { ok, warning, problem } = findingsOf(AREA);

const isMissing = (error: unknown): boolean =>
  error instanceof ServiceError && /does not host this topic|UNKNOWN_TOPIC/i.test(innermostMessage(error));

const kindOf = (topic: string, { topics }: BusConfig): TopicKind => {
  if (topics.includes(topic)) return "events";
  return topics.some((events) => deadLetterTopic(events) === topic) ? "dead-letters" : "commands";
};

/** null for a missing topic. */
const readTopics = (admin: Admin, config: BusConfig): Promise<(Omit<TopicFacts, "partitions"> | null)[]> =>
  Promise.all(
    wantedTopics(config, { partitions: 1, replication: 1 }).map(async ({ topic, config: wanted = {} }) => {
      try {
        // Before the offsets, which fail for all topics if one is missing.
        const settings = await admin.topicConfig(topic);
        return { topic, kind: kindOf(topic, config), config: settings, wanted };
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    }),
  );

const withPartitions = async (admin: Admin, facts: Omit<TopicFacts, "partitions">): Promise<TopicFacts> => ({
  ...facts,
  partitions: (await admin.fetchOffsets(facts.topic)).length,
});

const groupFindings = async (admin: Admin, config: BusConfig): Promise<Findings> => {
  const name = `group ${config.groupId}`;
  const lags = await fetchLag(admin, config);
  if (lags.every(({ committed }) => committed === null)) {
    const filled = lags.some(({ start, end }) => end > start);
    return [
      filled
        ? warning(name, "has read nothing yet", "start ingest, or check that its KAFKA_GROUP_ID is this one")
        : ok(name, "has read nothing, and there is nothing to read"),
    ];
  }
  const lost = applying(
    lags.map(
      ({ topic, partition, committed, start }) =>
        committed !== null &&
        committed < start &&
        problem(
          name,
          `${start - committed} messages of ${topic}/${partition} were deleted before they were read`,
          "raise retention.ms of the topic and start ingest; have the platform export the records of that time again",
        ),
    ),
  );
  const lag = lags.reduce((sum, one) => sum + one.lag, 0);
  return [...lost, ok(name, `${lag} messages behind: \`export-ops status --partitions\` shows more`)];
};

export const memberFinding = (members: number, groupId: string): Finding =>
  members === 0
    ? warning("ingest", `no process is in the group ${groupId}`, "start ingest: no new events are stored")
    : ok("ingest", `${members} in the group ${groupId}`);

export const busFindings = (config: BusConfig, settings: ServiceSettings): Promise<Findings> =>
  attempt(AREA, "brokers", () =>
    withAdmin(config, async (admin) => {
      const found = await readTopics(admin, config);
      const topics = await Promise.all(
        found.flatMap((facts) => (facts === null ? [] : [withPartitions(admin, facts)])),
      );
      const names = wantedTopics(config, { partitions: 1, replication: 1 }).map(({ topic }) => topic);
      const missing = names.filter((_, at) => found[at] === null);
      const group = config.topics.some((topic) => missing.includes(topic))
        ? []
        : await attempt(AREA, `group ${config.groupId}`, () => groupFindings(admin, config));
      return [
        ok("brokers", `answer at ${config.brokers.join(", ")}`),
        ...applying([
          missing.length > 0 &&
            problem(
              "topics",
              `not there: ${missing.join(", ")}`,
              "create them with `export-ops topics create`; if they have other names, set the TOPIC_ variables",
            ),
        ]),
        ...topics.flatMap((facts) => topicFindings(facts, settings)),
        ...group,
        ...(await attempt(AREA, "ingest", async () => [
          memberFinding(await admin.fetchMembers(config.groupId), config.groupId),
        ])),
      ];
    }),
  );
