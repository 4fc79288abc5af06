import type { ServiceSettings } from "../config.ts";
import { TIMESTAMP_TYPE, type WantedTopic } from "../setup/topics.ts";
import { applying, type Finding, type Findings, findingsOf } from "./finding.ts";

const { ok, warning, problem } = findingsOf("Kafka");

const DAY_MS = 86_400_000;
/** Ingest may stop for days. */
const SHORT_RETENTION_MS = 3 * DAY_MS;

export type TopicFacts = {
  readonly topic: string;
  readonly kind: WantedTopic["kind"];
  readonly partitions: number;
  readonly config: Readonly<Record<string, string>>;
  /** As `topics create` sets them. */
  readonly wanted: Readonly<Record<string, string>>;
};

const days = (ms: number): string => `${Number((ms / DAY_MS).toFixed(1))} days`;

const retentionFinding = ({ topic, kind, config }: TopicFacts, settings: ServiceSettings): Finding => {
  const name = `retention of ${topic}`;
  const retentionMs = Number(config["retention.ms"]);
  if (retentionMs < 0) {
    const advice = "set retention.ms: erased records stay in Kafka until the topic deletes them";
    return warning(name, "unlimited", advice);
  }
  if (retentionMs < SHORT_RETENTION_MS) {
    const loss =
      kind === "events"
        ? "when ingest stops for longer, it loses events"
        : "dead letters older than this cannot be replayed";
    return warning(name, days(retentionMs), `raise retention.ms: ${loss}`);
  }
  if (kind === "dead-letters") return ok(name, days(retentionMs));
  if (!settings.landing && retentionMs < settings.landingDays * DAY_MS) {
    const advice = "a backfill cannot go further back: switch LANDING on or raise retention.ms";
    return warning(name, `${days(retentionMs)}, while LANDING is off`, advice);
  }
  const landing = settings.landing ? `; the landing table keeps ${settings.landingDays} days` : "";
  return ok(name, `${days(retentionMs)}${landing}`);
};

export const topicFindings = (facts: TopicFacts, settings: ServiceSettings): Findings => {
  const { topic, kind, config, wanted, partitions } = facts;
  const name = `topic ${topic}`;
  const other = (setting: string, is: string | number, wish: string | number, why: string): Finding =>
    problem(
      name,
      `${setting} is ${is}`,
      `${why}: kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${setting}=${wish}`,
    );
  const timestamps = config["message.timestamp.type"] ?? "unknown";
  const cleanup = config["cleanup.policy"] ?? "delete";
  const wantedBytes = Number(wanted["max.message.bytes"] ?? 0);
  const bytes = Number(config["max.message.bytes"]);
  const late = "the clocks of producers would decide which events are late";
  const wrong = applying([
    timestamps !== TIMESTAMP_TYPE && other("message.timestamp.type", timestamps, TIMESTAMP_TYPE, late),
    cleanup !== "delete" &&
      other("cleanup.policy", cleanup, "delete", "compaction removes exports before they are read"),
    bytes < wantedBytes &&
      other(
        "max.message.bytes",
        bytes,
        wantedBytes,
        "a large rejected event does not fit together with its reason",
      ),
  ]);
  const settled = wrong.length > 0 ? wrong : [ok(name, `${partitions} partitions, dated on arrival`)];
  return kind === "commands" ? settled : [...settled, retentionFinding(facts, settings)];
};
