import { expect, it } from "vitest";
import { servedLogs } from "./topic-logs.ts";

const ID = "00112233445566778899aabbccddeeff";
const LOG = { topic: "t", topicId: ID, partition: 7 };
const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(" ", ""), "hex");

const brokerOf = (errorCode: number, { fetch = 17, metadata = 13 } = {}) => {
  const answer = Buffer.concat([
    hex(`00 00000000 0000 00000000 02 ${ID} 02 00000007`),
    Buffer.from([0, errorCode]),
    // Ends, one aborted transaction, no replica, no messages.
    hex(`${"ff".repeat(24)} 02 ${"00".repeat(16)} 00 ffffffff 00 00 00 00`),
  ]);
  const sent: Buffer[] = [];
  const name = Symbol("private:Broker:sendRequest");
  class Broker {
    versions = { 1: { maxVersion: fetch }, 3: { maxVersion: metadata } };
    async [name]({
      request,
      response,
    }: {
      request: { encode(): Promise<{ buffer: Buffer }> };
      response: { decode(raw: Buffer): Promise<Buffer>; parse(raw: Buffer): unknown };
    }) {
      sent.push((await request.encode()).buffer);
      return response.parse(await response.decode(answer));
    }
  }
  return { broker: new Broker(), sent };
};

it("asks for no message of the topic with the id", async () => {
  const { broker, sent } = brokerOf(1);
  await servedLogs(broker, [LOG]);
  const partition = "00000007 ffffffff 7fffffffffffffff ffffffff ffffffffffffffff 00000000 00";
  const limits = "ffffffff 00000000 00000000 00000000 00 00000000 ffffffff";
  expect(sent).toEqual([hex(`00 ${limits} 02 ${ID} 02 ${partition} 00 01 01 00`)]);
});

it.each([
  ["that the offset is behind the end", 1, [LOG]],
  ["that it does not know the id", 100, undefined],
  ["that its log is another topic's", 103, undefined],
  ["that its log is on a broken disk", 56, []],
])("takes the answer %s", async (_, errorCode, served) => {
  expect(await servedLogs(brokerOf(errorCode).broker, [LOG])).toEqual(served);
});

it("rejects with the error of a partition whose log is not there to be compared", async () => {
  await expect(servedLogs(brokerOf(6).broker, [LOG])).rejects.toMatchObject({
    type: "NOT_LEADER_FOR_PARTITION",
  });
});

it("asks a broker nothing that gives no ids", async () => {
  const { broker, sent } = brokerOf(103, { fetch: 11, metadata: 9 });
  expect(await servedLogs(broker, [LOG])).toEqual([LOG]);
  expect(sent).toEqual([]);
});
