import kafkajs from "kafkajs";
import { expect, it } from "vitest";
import { mayBeCreatedLater } from "./errors.ts";

const refusal = (type: string, retriable = false) =>
  Object.assign(new kafkajs.KafkaJSError(type, { retriable }), { type });
const aggregate = (...errors: Error[]) => new kafkajs.KafkaJSAggregateError("Topic creation errors", errors);

it.each([
  [["INVALID_REPLICATION_FACTOR"], true],
  [["TOPIC_ALREADY_EXISTS", "INVALID_REPLICATION_FACTOR"], true],
  [["INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION"], false],
  [["INVALID_TOPIC_EXCEPTION"], false],
  [["TOPIC_AUTHORIZATION_FAILED"], false],
])("topics that are refused with %j may be created later: %s", (types, later) => {
  expect(mayBeCreatedLater(aggregate(...types.map((type) => refusal(type))))).toBe(later);
});

it("takes what kafkajs repeats by itself for passing, and a single error for none of topics", () => {
  expect(mayBeCreatedLater(aggregate(refusal("REQUEST_TIMED_OUT", true)))).toBe(true);
  expect(mayBeCreatedLater(refusal("INVALID_REPLICATION_FACTOR"))).toBe(false);
});
