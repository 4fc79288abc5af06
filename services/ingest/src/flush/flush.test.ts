import { setImmediate } from "node:timers/promises";
import { rejected } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { createFlush } from "./flush.ts";
import { exportedMessage } from "../exported-message.fixture.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createTopicBatches, type TopicBatch } from "../batch/topic-batch.ts";

const batchOf = (): TopicBatch => {
  const batch = createTopicBatches({
    topic: "messages",
    type: "message.exported",
    landingDays: null,
    traces: null,
    gate: { judgement: () => 1 },
    now: () => 0,
  }).open(4);
  batch.sources.push(exportedMessage(0), exportedMessage(1));
  batch.deadLetters.push({ source: exportedMessage(2), rejection: rejected("invalid_record", "because") });
  batch.offsets.set(0, 3);
  return batch;
};

const startFlush = (fails: { commit?: () => Promise<"committed"> } = {}) => {
  const steps: string[] = [];
  const { registry, metrics, log } = createTestMetrics();
  const flush = createFlush({
    topic: "messages",
    write: () => {
      steps.push("rows");
      return Promise.resolve({ refused: [1], reusable: false });
    },
    deadLetters: {
      send: async (topic, deadLetters) => {
        const sent = deadLetters.map(({ source, rejection }) => `${source.offset} ${rejection.reason}`);
        steps.push(`${topic}: ${sent.join(", ")}`);
        await setImmediate();
        steps.push("acknowledged");
      },
    },
    commit: (epoch, offsets) => {
      steps.push(`commit ${epoch} ${JSON.stringify(offsets)}`);
      return fails.commit?.() ?? Promise.resolve("committed");
    },
    metrics,
    log,
    now: () => 0,
  });
  return { flush, steps, registry };
};

const { signal } = new AbortController();

it("stores rows, then dead letters with the poison record, and commits once these are acknowledged", async () => {
  const { flush, steps } = startFlush();
  expect(await flush(batchOf(), Promise.resolve(), signal)).toEqual({ reusable: false });
  expect(steps).toEqual([
    "rows",
    "messages: 2 invalid_record, 1 refused_by_warehouse",
    "acknowledged",
    'commit 4 [{"topic":"messages","partition":0,"offset":3}]',
  ]);
});

it("settles a batch whose offsets could not be committed", async () => {
  const { flush, registry } = startFlush({ commit: () => Promise.reject(new Error("away")) });
  await flush(batchOf(), Promise.resolve(), signal);
  expect(await registry.text()).toMatch(/conversation_export_ingest_commits_total\{.*result="failed".*\} 1/);
});
