import {
  createErrorFromCode,
  type Decoder,
  type Encoder,
  maxVersionOf,
  sendOwnRequest,
  TOPIC_ID_BYTES,
} from "../kafkajs/own-request.ts";

/** Hexadecimal; null: none, as before Kafka 2.8. */
export type TopicIds = ReadonlyMap<string, string | null>;

/** Metadata has ids from version 10 on (KIP-516); kafkajs 2.2.4 asks version 6. */
const METADATA = 3;
const FIRST_VERSION = 10;
const NO_ID = Buffer.alloc(TOPIC_ID_BYTES);

const write = (encoder: Encoder, topics: readonly string[]): Encoder => {
  encoder.writeUVarInt(topics.length + 1);
  for (const topic of topics) encoder.writeBuffer(NO_ID).writeUVarIntString(topic).writeUVarInt(0);
  return encoder.writeBoolean(false).writeBoolean(false).writeBoolean(false).writeUVarInt(0);
};

const skipBroker = (decoder: Decoder): void => {
  decoder.readInt32();
  decoder.readUVarIntString();
  decoder.readInt32();
  decoder.readUVarIntString();
  decoder.readTaggedFields();
};

const skipPartition = (decoder: Decoder): void => {
  decoder.readInt16();
  for (let index = 0; index < 3; index += 1) decoder.readInt32();
  for (let index = 0; index < 3; index += 1) decoder.readUVarIntArray((one) => one.readInt32());
  decoder.readTaggedFields();
};

const readTopic = (decoder: Decoder): [string, string | null] => {
  const errorCode = decoder.readInt16();
  const name = decoder.readUVarIntString() ?? "";
  if (errorCode !== 0) throw createErrorFromCode(errorCode);
  const id = decoder.readBytes(NO_ID.length);
  decoder.readBoolean();
  decoder.readUVarIntArray(skipPartition);
  decoder.readInt32();
  decoder.readTaggedFields();
  return [name, id.equals(NO_ID) ? null : id.toString("hex")];
};

const read = (decoder: Decoder): [string, string | null][] => {
  decoder.readInt32(); // throttling
  decoder.readUVarIntArray(skipBroker);
  decoder.readUVarIntString(); // cluster id
  decoder.readInt32(); // controller
  return decoder.readUVarIntArray(readTopic) ?? [];
};

export const askTopicIds = async (broker: object, topics: readonly string[]): Promise<TopicIds> => {
  if (maxVersionOf(broker, METADATA) < FIRST_VERSION) return new Map(topics.map((topic) => [topic, null]));
  const ids = await sendOwnRequest(broker, {
    apiKey: METADATA,
    apiVersion: FIRST_VERSION,
    apiName: "Metadata",
    write: (encoder) => write(encoder, topics),
    read,
  });
  return new Map(ids);
};
