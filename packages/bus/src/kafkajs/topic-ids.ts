import { createRequire } from "node:module";

/** Ids of topics by name, as hexadecimal text; null: the broker tells none, as before Kafka 2.8. */
export type TopicIds = ReadonlyMap<string, string | null>;

/** kafkajs' writer and reader of the binary protocol, which its types leave out. */
type Encoder = {
  writeInt8(value: number): Encoder;
  writeBoolean(value: boolean): Encoder;
  writeBuffer(value: Buffer): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
};
type Decoder = {
  readInt16(): number;
  readInt32(): number;
  readBytes(length: number): Buffer;
  readBoolean(): boolean;
  readUVarIntString(): string | null;
  readUVarIntArray<T>(readOne: (decoder: Decoder) => T): T[] | null;
  readTaggedFields(): unknown;
};
/** The parts of kafkajs' broker that its types leave out. */
type RequestingBroker = {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number } | undefined>> | null;
};
type SendRequest = (this: unknown, request: object) => Promise<[name: string, id: string | null][]>;

const require = createRequire(import.meta.url);
const { Encoder: KafkaEncoder, Decoder: KafkaDecoder } = {
  Encoder: require("kafkajs/src/protocol/encoder.js") as new () => Encoder,
  Decoder: require("kafkajs/src/protocol/decoder.js") as new (raw: Buffer) => Decoder,
};
const { createErrorFromCode } = require("kafkajs/src/protocol/error.js") as {
  createErrorFromCode: (code: number) => Error;
};

/** Metadata, whose version 10 is the first one with ids (KIP-516); kafkajs 2.2.4 asks version 6. */
const METADATA = 3;
const FIRST_VERSION = 10;
const NO_ID = Buffer.alloc(16);

const encode = (topics: readonly string[]): Encoder => {
  // The empty tagged fields of the header come first, since kafkajs writes headers without them.
  const encoder = new KafkaEncoder().writeUVarInt(0).writeUVarInt(topics.length + 1);
  for (const topic of topics) encoder.writeBuffer(NO_ID).writeUVarIntString(topic).writeUVarInt(0);
  // Creates no topic, and asks for no operations of cluster and topics.
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

const decode = (raw: Buffer): [string, string | null][] => {
  const decoder = new KafkaDecoder(raw);
  decoder.readTaggedFields(); // of the header
  decoder.readInt32(); // how long the broker throttles
  decoder.readUVarIntArray(skipBroker);
  decoder.readUVarIntString(); // the id of the cluster
  decoder.readInt32(); // the controller
  return decoder.readUVarIntArray(readTopic) ?? [];
};

/** The request by kafkajs' private name, which also ends a connection that turns out to be closed. */
const sendOf = (broker: object): SendRequest => {
  const members = Object.getPrototypeOf(broker) as Record<symbol, SendRequest | undefined>;
  const name = Object.getOwnPropertySymbols(members).find(
    ({ description }) => description === "private:Broker:sendRequest",
  );
  const send = name === undefined ? undefined : members[name];
  if (send === undefined) throw new Error("this version of kafkajs sends requests in another way");
  return send;
};

/**
 * Asks a connected broker of kafkajs for the ids of topics, by which a topic is told from one of the same name that was deleted.
 * Rejects with the error of the protocol when it does not know one of them.
 */
export const askTopicIds = async (broker: object, topics: readonly string[]): Promise<TopicIds> => {
  const version = (broker as RequestingBroker).versions?.[METADATA]?.maxVersion ?? 0;
  if (version < FIRST_VERSION) return new Map(topics.map((topic) => [topic, null]));
  const ids = await sendOf(broker).call(broker, {
    request: {
      apiKey: METADATA,
      apiVersion: FIRST_VERSION,
      apiName: "Metadata",
      encode: () => Promise.resolve(encode(topics)),
    },
    response: { decode: (raw: Buffer) => Promise.resolve(raw), parse: decode },
  });
  return new Map(ids);
};
