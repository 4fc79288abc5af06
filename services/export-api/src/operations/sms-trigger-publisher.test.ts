import type { OutgoingMessage } from "@conversation-export/bus";
import { smsTriggerEvent } from "@conversation-export/domain";
import { createLogger, recordSpans, runInSpan, startSpan } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createTriggerPublisher } from "./sms-trigger-publisher.ts";

const event = smsTriggerEvent({
  id: "e-1",
  clientId: "acme",
  trigger: {
    campaign_key: "spring",
    language: "en",
    recipient: { meta_fields: { phone_number: "+15551234567" } },
  },
  requestedAt: 0,
});

const createPublisher = (stallMs = 1_000) => {
  const sent: { topic: string; message: OutgoingMessage | undefined }[] = [];
  const started = Promise.withResolvers<void>();
  let acknowledge = Promise.resolve();
  const producer = {
    start: () => started.promise,
    stop: () => Promise.resolve(),
    send: (topic: string, [message]: readonly OutgoingMessage[]) => {
      sent.push({ topic, message });
      return acknowledge;
    },
  };
  const log = createLogger({ service: "test", level: "silent" });
  const publisher = createTriggerPublisher({ producer, topic: "sms", stallMs, log });
  return { publisher, sent, started, waitFor: (promise: Promise<void>) => void (acknowledge = promise) };
};

it("refuses at once until it is connected, then sends a structured CloudEvent", async () => {
  const { publisher, sent, started } = createPublisher();
  await publisher.start();
  await expect(publisher.publish(event)).rejects.toMatchObject({ code: "bus_unavailable", retryable: true });
  started.resolve();
  await expect.poll(() => publisher.publish(event).then(() => "sent", String)).toBe("sent");
  expect(sent).toHaveLength(1);
  expect(sent[0]).toMatchObject({
    topic: "sms",
    message: {
      key: "acme:+15551234567",
      headers: { "content-type": "application/cloudevents+json; charset=utf-8" },
    },
  });
  expect(JSON.parse(String(sent[0]?.message?.value))).toEqual(event);
  await publisher.stop();
  await expect(publisher.publish(event)).rejects.toMatchObject({ code: "bus_unavailable" });
});

it("lets nothing queue up behind an event that waits too long", async () => {
  const { publisher, sent, started, waitFor } = createPublisher(50);
  started.resolve();
  await publisher.start();
  await started.promise;
  const acknowledged = Promise.withResolvers<void>();
  waitFor(acknowledged.promise);
  const slow = publisher.publish(event);
  await expect
    .poll(() => Promise.race([publisher.publish(event), Promise.resolve("waits")]).catch(() => "refused"))
    .toBe("refused");
  const before = sent.length;
  await expect(publisher.publish(event)).rejects.toMatchObject({ code: "bus_unavailable" });
  expect(sent).toHaveLength(before);
  acknowledged.resolve();
  await slow;
  await expect.poll(() => publisher.publish(event).then(() => "sent", String)).toBe("sent");
});

it("hands the trace of the request on", async () => {
  const { publisher, sent, started } = createPublisher();
  started.resolve();
  await publisher.start();
  const { spans, stop } = await recordSpans(1);
  await expect
    .poll(() =>
      runInSpan(startSpan("request", null), () => publisher.publish(event)).then(() => "sent", String),
    )
    .toBe("sent");
  await stop();
  const span = spans.find(({ name }) => name === "send sms")?.spanContext();
  expect(sent.at(-1)?.message?.headers).toMatchObject({
    traceparent: `00-${span?.traceId}-${span?.spanId}-01`,
  });
});
