import { expect, it } from "vitest";
import { askTopicIds } from "./topic-ids.ts";

const brokerOf = (
  maxVersion: number,
  topics: readonly { readonly name: string; readonly id: Buffer; readonly errorCode?: number }[],
) => {
  const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex");
  const text = (value: string): Buffer => Buffer.from([value.length + 1, ...Buffer.from(value)]);
  const partition = "0000 00000000 00000007 00000000 02 00000007 02 00000007 01 00";
  const answer = Buffer.concat([
    hex("00 00000000 02 00000007"), // tagged fields of the header, throttling, one broker
    text("host"),
    hex("00002384 00 00"),
    text("cluster"),
    hex("00000007"),
    Buffer.from([topics.length + 1]),
    ...topics.flatMap(({ name, id, errorCode = 0 }) => [
      Buffer.from([0, errorCode]),
      text(name),
      id,
      hex(`00 02 ${partition} 00000000 00`),
    ]),
    hex("00000000 00"),
  ]);
  const name = Symbol("private:Broker:sendRequest");
  class Broker {
    versions = { 3: { maxVersion } };
    async [name]({
      response,
    }: {
      response: { decode(raw: Buffer): Promise<Buffer>; parse(raw: Buffer): unknown };
    }) {
      return response.parse(await response.decode(answer));
    }
  }
  return new Broker();
};

const ID = Buffer.from("00112233445566778899aabbccddeeff", "hex");

it("reads the ids of topics out of an answer", async () => {
  const broker = brokerOf(13, [
    { name: "one", id: ID },
    { name: "two", id: Buffer.alloc(16) },
  ]);
  expect([...(await askTopicIds(broker, ["one", "two"]))]).toEqual([
    ["one", ID.toString("hex")],
    // During an upgrade the cluster gives no ids yet.
    ["two", null],
  ]);
});

it("rejects when the broker does not know a topic, as one that is being created", async () => {
  const broker = brokerOf(13, [{ name: "one", id: Buffer.alloc(16), errorCode: 3 }]);
  await expect(askTopicIds(broker, ["one"])).rejects.toMatchObject({
    type: "UNKNOWN_TOPIC_OR_PARTITION",
    retriable: true,
  });
});

it("asks no broker before Kafka 2.8", async () => {
  expect([...(await askTopicIds(brokerOf(9, []), ["one"]))]).toEqual([["one", null]]);
});
