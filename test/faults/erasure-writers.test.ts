import { afterAll, beforeAll, expect, it } from "vitest";
import { findInActiveParts } from "../compare/part-bytes.ts";
import { ENV, type ErasureTrial, startErasureTrial } from "../system/erasure-trial.ts";
import { until } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";
import { stopProcess } from "../system/stop-process.ts";

let trial: ErasureTrial;
beforeAll(async () => {
  trial = await startErasureTrial("erasure-writers");
});
afterAll(() => trial?.system.stop());

it("needs no Redis to keep writers out: they go on while it is away, and so does the watermark", async () => {
  const before = await trial.readAll();
  const { redis } = trial.system.stack;
  await whileStopped(redis, async () => {
    await trial.delivery.send(trial.person("hung"));
    await until("the records are readable", 30_000, async () =>
      (await trial.readAll()).includes("hung asked"),
    );
    const over = Date.now() * 1000;
    await until("the watermark goes on", 30_000, async () => {
      const mark = await trial.system.sql("SELECT max(version) FROM watermarks WHERE list = 'conversations'");
      return Number(mark) > over;
    });
  });
  await trial.erase({ email: "hung@example.com" });
  expect(await trial.readAll()).toBe(before);
  const ended = Promise.race([trial.ingest.exited, trial.jobs.exited]);
  expect(await Promise.race([ended, Promise.resolve("none")])).toBe("none");
});

it("is not defeated by a process that was paused with unwritten records", async () => {
  await trial.ingest.kill("SIGTERM");
  const slow = { ...ENV, BATCH_MAX_AGE_MS: "600000", KAFKA_SESSION_TIMEOUT_MS: "60000" };
  trial.ingest = await trial.system.service("ingest", slow);
  await trial.delivery.send(trial.person("held"));
  await until("the records are held", 30_000, async () => {
    const text = await (await fetch(`${trial.ingest.metricsUrl}/metrics`)).text();
    const counts = [
      ...text.matchAll(/^conversation_export_ingest_records_consumed_total\{.*\} (\d+)$/gm),
    ].map((match) => Number(match[1]));
    return counts.reduce((sum, count) => sum + count, 0) === 4;
  });
  await stopProcess(trial.ingest.pid);
  await trial.erase({ email: "held@example.com" });
  const before = await trial.readAll();
  process.kill(trial.ingest.pid, "SIGCONT");
  // It judges its records again before writing; only the first tells whom the others are about.
  await trial.ingest.kill("SIGTERM");
  expect(await trial.system.sql("SELECT count() FROM landing WHERE record_id = 'held-user'")).toBe("0");
  await trial.ingestAgain("conversation-export-ingest");
  // The end user's address was unknown before his own event.
  await until("nothing of the person is left", 30_000, async () => (await trial.readAll()) === before);
  await until("no writer's finding is left", 30_000, async () => {
    const { found } = await findInActiveParts(trial.system.stack.clickhouse.url("migrator"), [
      "held-chatter",
    ]);
    const findings = await trial.system.sql("SELECT count() FROM suppressions WHERE kind = 'end_user'");
    return Object.keys(found).length === 0 && findings === "0";
  });
  expect(await trial.system.sql("SELECT count() FROM end_users WHERE end_user_id LIKE 'held%'")).toBe("0");
});
