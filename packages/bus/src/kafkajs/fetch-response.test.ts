import { beforeAll, expect, it } from "vitest";
import { packBatch, packRecords } from "../records/batch.fixture.ts";
import { type FetchedPartition, isPassedError, passBatches } from "./fetch-response.ts";
import { internals, patchOnce } from "./internals.ts";

type Encoder = {
  writeInt16(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeInt64(value: string): Encoder;
  writeString(value: string): Encoder;
  writeBuffer(value: Buffer): Encoder;
  readonly buffer: Buffer;
};
type Response = {
  decode(raw: Buffer): Promise<object>;
  parse(data: object): Promise<{ responses: { partitions: FetchedPartition[] }[] }>;
};

const VERSION = 11;
const BATCH = packBatch({ first: 0, last: 0, records: packRecords([{ offset: 0, value: "v" }]) });

beforeAll(() => patchOnce(passBatches.name, passBatches));

/** Partition 0 has a message. */
const fetch = async (errorCode: number, recordSet = Buffer.alloc(0)): Promise<FetchedPartition[]> => {
  const KafkaEncoder = internals("protocol/encoder") as new () => Encoder;
  const raw = new KafkaEncoder().writeInt32(0).writeInt16(0).writeInt32(0);
  raw.writeInt32(1).writeString("t").writeInt32(2);
  for (const [partition, code, records] of [
    [1, errorCode, recordSet],
    [0, 0, BATCH],
  ] as const) {
    const end = code === 0 ? "1" : "-1";
    raw.writeInt32(partition).writeInt16(code).writeInt64(end).writeInt64(end).writeInt64("0");
    raw.writeInt32(0).writeInt32(-1).writeInt32(records.length).writeBuffer(records);
  }
  const { protocol } = internals("protocol/requests/fetch/index") as {
    protocol: (options: { version: number }) => (request: object) => { response: Response };
  };
  const { response } = protocol({ version: VERSION })({ topics: [] });
  const { responses } = await response.parse(await response.decode(raw.buffer));
  return responses.flatMap(({ partitions }) => partitions);
};

const errorOf = (fetched: FetchedPartition | undefined): Error | undefined =>
  fetched !== undefined && isPassedError(fetched.messages) ? fetched.messages[0].error : undefined;

it.each([
  ["an unknown error", -1, "UNKNOWN"],
  ["a damaged file", 2, "CORRUPT_MESSAGE"],
  ["a broken disk", 56, "KAFKA_STORAGE_ERROR"],
  ["an end that is not known yet", 78, "OFFSET_NOT_AVAILABLE"],
])("passes %s of one partition, and what the other has", async (_, errorCode, type) => {
  const [one, other] = await fetch(errorCode);
  expect(errorOf(one)).toMatchObject({ type });
  expect(other?.messages).toMatchObject([{ batch: { firstOffset: 0 }, isCommitted: true }]);
});

it("passes the error of a batch whose length is damaged, and what the other partition has", async () => {
  const damaged = Buffer.from(BATCH);
  damaged.writeInt32BE(5, 8);
  const [one, other] = await fetch(0, damaged);
  expect(errorOf(one)).toMatchObject({ code: "batch_length" });
  expect(other?.messages).toHaveLength(1);
});

it.each([
  ["OFFSET_OUT_OF_RANGE", 1],
  ["UNKNOWN_TOPIC_OR_PARTITION", 3],
  ["LEADER_NOT_AVAILABLE", 5],
  ["NOT_LEADER_FOR_PARTITION", 6],
  ["TOPIC_AUTHORIZATION_FAILED", 29],
  ["FENCED_LEADER_EPOCH", 74],
  ["UNKNOWN_LEADER_EPOCH", 75],
])("leaves %s to kafkajs", async (type, errorCode) => {
  await expect(fetch(errorCode)).rejects.toMatchObject({ type });
});
