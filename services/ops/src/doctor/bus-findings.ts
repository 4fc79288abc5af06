import type { Admin } from "@conversation-export/bus";
import type { BusConfig, ServiceSettings } from "../config.ts";
import { fetchLag, withAdmin } from "../connect/connections.ts";
import { type WantedTopic, wantedTopics } from "../setup/topics.ts";
import { applying, attempt, type Finding, type Findings, findingsOf } from "./finding.ts";
import { type TopicFacts, topicFindings } from "./topic-findings.ts";

const AREA = "Kafka";
const { ok, warning, problem } = findingsOf(AREA);

const readTopic = async (
  admin: Admin,
  { topic, kind, config: wanted }: WantedTopic,
): Promise<TopicFacts> => ({
  topic,
  kind,
  partitions: (await admin.fetchOffsets(topic)).length,
  config: await admin.topicConfig(topic),
  wanted,
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
      const there = new Set(await admin.listTopics());
      const wanted = wantedTopics(config);
      const missing = wanted.flatMap(({ topic }) => (there.has(topic) ? [] : [topic]));
      const present = wanted.filter(({ topic }) => there.has(topic));
      const topics = await Promise.all(present.map((one) => readTopic(admin, one)));
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
              "create them with `export-ops topics create`; if they have other names, set the TOPIC_ variables; if they exist, let this user describe them",
            ),
        ]),
        ...topics.flatMap((facts) => topicFindings(facts, settings)),
        ...group,
        ...(await attempt(AREA, "ingest", async () =>
          memberFinding(await admin.fetchMembers(config.groupId), config.groupId),
        )),
      ];
    }),
  );
