import { internals, privateOf } from "./internals.ts";

export type Encoder = {
  writeInt8(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeInt64(value: string): Encoder;
  writeBoolean(value: boolean): Encoder;
  writeBuffer(value: Buffer): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
};
export type Decoder = {
  readInt16(): number;
  readInt32(): number;
  readInt64(): { toString(): string };
  readString(): string;
  readBytes(length: number): Buffer;
  readBoolean(): boolean;
  readArray<T>(readOne: (decoder: Decoder) => T): T[];
  readUVarIntString(): string | null;
  readUVarIntBytes(): Buffer | null;
  readUVarIntArray<T>(readOne: (decoder: Decoder) => T): T[] | null;
  readTaggedFields(): unknown;
};
/** kafkajs' types leave it out. */
type RequestingBroker = {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number } | undefined>> | null;
};
type SendRequest = (this: unknown, request: object) => Promise<unknown>;

const KafkaEncoder = internals("protocol/encoder") as new () => Encoder;
export const KafkaDecoder = internals("protocol/decoder") as new (raw: Buffer) => Decoder;

export const { createErrorFromCode } = internals("protocol/error") as {
  createErrorFromCode: (code: number) => Error;
};

/**
 * Others that a fetch gives: none, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE,
 * NOT_LEADER_FOR_PARTITION, FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH, which kafkajs handles, and
 * TOPIC_AUTHORIZATION_FAILED.
 */
const NOT_OF_PARTITION = [0, 1, 3, 5, 6, 74, 75, 29];

/** true: the broker cannot read this partition now; others are as usual. */
export const isOfPartition = (errorCode: number): boolean => !NOT_OF_PARTITION.includes(errorCode);

export const TOPIC_ID_BYTES = 16;

export const maxVersionOf = (broker: object, apiKey: number): number =>
  (broker as RequestingBroker).versions?.[apiKey]?.maxVersion ?? 0;

/** The private method also ends a closed connection. */
const sendOf = (broker: object): SendRequest =>
  privateOf(Object.getPrototypeOf(broker) as object, "private:Broker:sendRequest") as SendRequest;

/** For versions with tagged fields, which kafkajs lacks. */
export const sendOwnRequest = async <T>(
  broker: object,
  request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    write(encoder: Encoder): Encoder;
    read(decoder: Decoder): T;
  },
): Promise<T> => {
  const { apiKey, apiVersion, apiName } = request;
  const parse = (raw: Buffer): T => {
    const decoder = new KafkaDecoder(raw);
    decoder.readTaggedFields();
    return request.read(decoder);
  };
  const answer = await sendOf(broker).call(broker, {
    request: {
      apiKey,
      apiVersion,
      apiName,
      // kafkajs writes headers without their tagged fields.
      encode: () => Promise.resolve(request.write(new KafkaEncoder().writeUVarInt(0))),
    },
    response: { decode: (raw: Buffer) => Promise.resolve(raw), parse },
  });
  return answer as T;
};
