import kafkajs from "kafkajs";
import { describe, expect, it } from "vitest";
import { busError, mayPass } from "./errors.ts";

const { KafkaJSConnectionError, KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded } = kafkajs;
const away = new KafkaJSConnectionError("connect ECONNREFUSED 127.0.0.1:9092");

describe("an error of kafkajs", () => {
  it.each([
    ["a broker that is away", away],
    [
      "one that was away for all retries",
      new KafkaJSNumberOfRetriesExceeded(away, { retryCount: 8, retryTime: 3_000 }),
    ],
    [
      "the same behind a retry around the retries",
      Object.assign(new KafkaJSNonRetriableError(away), { cause: away }),
    ],
    [
      "a lock that a request to a hanging broker holds",
      Object.assign(new KafkaJSNonRetriableError("Timeout"), { name: "KafkaJSLockTimeout" }),
    ],
  ])("may pass: %s", (_name, error) => {
    expect(mayPass(error)).toBe(true);
    expect(busError("produce", "cannot write", error)).toMatchObject({ code: "produce", retryable: true });
  });

  it.each([
    ["what kafkajs gives up", new KafkaJSNonRetriableError("credentials refused")],
    ["what is not of kafkajs", new TypeError("no such property")],
  ])("stays: %s", (_name, error) => {
    expect(mayPass(error)).toBe(false);
  });
});
