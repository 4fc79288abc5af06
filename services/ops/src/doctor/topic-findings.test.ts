import { expect, it } from "vitest";
import { type TopicFacts, topicFindings } from "./topic-findings.ts";

const DAY = 86_400_000;
const settings = { landing: true, landingDays: 14, windowSeconds: 3600, erasureDeadlineMs: 72 * 3_600_000 };
const healthy: TopicFacts = {
  topic: "messages",
  kind: "events",
  partitions: 6,
  config: {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": String(7 * DAY),
    "max.message.bytes": "1048588",
  },
  wanted: { "message.timestamp.type": "LogAppendTime" },
};

it("finds nothing wrong with a topic that was made as it should be", () => {
  expect(topicFindings(healthy, settings).map(({ state }) => state)).toEqual(["ok", "ok"]);
});

it.each([
  [{ "message.timestamp.type": "CreateTime" }, "problem", "message.timestamp.type=LogAppendTime"],
  [{ "cleanup.policy": "compact,delete" }, "problem", "cleanup.policy=delete"],
  [{ "retention.ms": "-1" }, "warning", "erased"],
  [{ "retention.ms": String(2 * DAY) }, "warning", "loses events"],
])("says what to do about %j", (config, state, advice) => {
  const findings = topicFindings({ ...healthy, config: { ...healthy.config, ...config } }, settings);
  const wrong = findings.filter((finding) => finding.state !== "ok");
  expect(wrong).toMatchObject([{ state, advice: expect.stringContaining(advice) }]);
});

it("wants the topic to reach as far back as a backfill when there is no landing table", () => {
  const without = { ...settings, landing: false };
  expect(topicFindings(healthy, without)[1]).toMatchObject({ state: "warning" });
  const long = { ...healthy, config: { ...healthy.config, "retention.ms": String(30 * DAY) } };
  expect(topicFindings(long, without)[1]).toMatchObject({ state: "ok" });
});

it("wants room for a rejected event and its reason among the dead letters", () => {
  const deadLetters: TopicFacts = {
    ...healthy,
    kind: "dead-letters",
    wanted: { "max.message.bytes": "2097176" },
  };
  expect(topicFindings(deadLetters, settings)[0]).toMatchObject({
    state: "problem",
    advice: expect.stringContaining("max.message.bytes=2097176"),
  });
});

it("leaves the age of SMS commands to their reader", () => {
  const config = { ...healthy.config, "retention.ms": "1000" };
  expect(topicFindings({ ...healthy, kind: "commands", config }, settings)).toMatchObject([{ state: "ok" }]);
});
