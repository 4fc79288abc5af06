import {
  createErrorFromCode,
  type Decoder,
  type Encoder,
  isOfPartition,
  maxVersionOf,
  sendOwnRequest,
  TOPIC_ID_BYTES,
} from "../kafkajs/own-request.ts";
import { askTopicIds } from "./topic-ids.ts";

export type TopicLog = { readonly topic: string; readonly topicId: string; readonly partition: number };

/** Fetch is by ids from version 13 on (KIP-516, Kafka 3.1); kafkajs 2.2.4 has version 11. */
const FETCH = 1;
const FIRST_VERSION = 13;
/** NONE and OFFSET_OUT_OF_RANGE, which come after the comparison of ids. */
const SAME_ID = [0, 1];
/** UNKNOWN_TOPIC_ID and INCONSISTENT_TOPIC_ID. */
const OTHER_ID = [100, 103];
/** Beyond every end, so that no message comes. */
const BEYOND = "9223372036854775807";

const write = (encoder: Encoder, logs: readonly TopicLog[]): Encoder => {
  // No replica, at once, no bytes.
  encoder.writeInt32(-1).writeInt32(0).writeInt32(0).writeInt32(0);
  // Uncommitted messages too, no session.
  encoder.writeInt8(0).writeInt32(0).writeInt32(-1);
  encoder.writeUVarInt(logs.length + 1);
  for (const { topicId, partition } of logs) {
    encoder.writeBuffer(Buffer.from(topicId, "hex")).writeUVarInt(2);
    // Any epoch of the leader, no follower's values.
    encoder.writeInt32(partition).writeInt32(-1).writeInt64(BEYOND).writeInt32(-1).writeInt64("-1");
    encoder.writeInt32(0).writeUVarInt(0).writeUVarInt(0);
  }
  // Ends no session, no rack.
  return encoder.writeUVarInt(1).writeUVarIntString("").writeUVarInt(0);
};

const skipAborted = (decoder: Decoder): void => {
  decoder.readInt64();
  decoder.readInt64();
  decoder.readTaggedFields();
};

type Answer = { readonly partition: number; readonly errorCode: number };

const readPartition = (decoder: Decoder): Answer => {
  const partition = decoder.readInt32();
  const errorCode = decoder.readInt16();
  for (let index = 0; index < 3; index += 1) decoder.readInt64();
  decoder.readUVarIntArray(skipAborted);
  decoder.readInt32();
  decoder.readUVarIntBytes();
  decoder.readTaggedFields();
  return { partition, errorCode };
};

const readTopic = (decoder: Decoder): (Answer & { readonly topicId: string })[] => {
  const topicId = decoder.readBytes(TOPIC_ID_BYTES).toString("hex");
  const answers = decoder.readUVarIntArray(readPartition) ?? [];
  decoder.readTaggedFields();
  return answers.map((answer) => ({ ...answer, topicId }));
};

const read = (decoder: Decoder) => {
  decoder.readInt32(); // throttling
  const errorCode = decoder.readInt16();
  decoder.readInt32(); // session
  return { errorCode, answers: (decoder.readUVarIntArray(readTopic) ?? []).flat() };
};

/**
 * Those of `logs` that the broker can read; undefined: some are another topic's. A broker may know the new id before
 * it changes the log.
 */
export const servedLogs = async (
  broker: object,
  logs: readonly TopicLog[],
): Promise<readonly TopicLog[] | undefined> => {
  if (maxVersionOf(broker, FETCH) < FIRST_VERSION) {
    const ids = await askTopicIds(broker, [...new Set(logs.map(({ topic }) => topic))]);
    // During an upgrade not all brokers give ids.
    return logs.every(({ topic, topicId }) => (ids.get(topic) ?? topicId) === topicId) ? logs : undefined;
  }
  const { errorCode, answers } = await sendOwnRequest(broker, {
    apiKey: FETCH,
    apiVersion: FIRST_VERSION,
    apiName: "Fetch",
    write: (encoder) => write(encoder, logs),
    read,
  });
  const errorCodes = [errorCode, ...answers.map((answer) => answer.errorCode)];
  if (errorCodes.some((code) => OTHER_ID.includes(code))) return undefined;
  const unread = answers.filter((answer) => isOfPartition(answer.errorCode));
  const error = isOfPartition(errorCode)
    ? errorCode
    : errorCodes.find((code) => !SAME_ID.includes(code) && !isOfPartition(code));
  if (error !== undefined) throw createErrorFromCode(error);
  return logs.filter(
    ({ topicId, partition }) => !unread.some((one) => one.topicId === topicId && one.partition === partition),
  );
};
