// Publishes each line of conversation.jsonl, a CloudEvent, to the topic of conversations.
import { readFileSync } from "node:fs";
import { Kafka, logLevel } from "kafkajs";

const lines = readFileSync(new URL("conversation.jsonl", import.meta.url), "utf8").trim().split("\n");
const messages = lines.map((value) => {
  const { clientid, data } = JSON.parse(value);
  const headers = { "content-type": "application/cloudevents+json" };
  // All exports of a record have one key, so that they stay in order.
  return { key: `${clientid}:${data._id}`, headers, value };
});
// kafkajs 2.2 sets a timer with a negative time, of which Node 24 warns.
process.removeAllListeners("warning");
const brokers = process.env.KAFKA_BROKERS.split(",");
const producer = new Kafka({ brokers, logLevel: logLevel.ERROR }).producer();
await producer.connect();
await producer.send({ topic: process.env.TOPIC_CONVERSATIONS ?? "conversations", acks: -1, messages });
await producer.disconnect();
console.log(`published: ${messages.map(({ key }) => key).join(", ")}`);
