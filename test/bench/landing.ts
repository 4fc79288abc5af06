import type { System } from "../system/system.ts";
import { createSample } from "../sample/index.ts";
import { fillBus, PLAIN_SAMPLE, runIngest } from "./ingest-run.ts";
import { median, type Result } from "./report.ts";

const ROUNDS = 5;
const MESSAGES_EACH = 4;

/** Reads all topics with and without the landing table, in alternating order. */
export const benchLanding = async (
  system: System,
  events: number,
  log: (line: string) => void,
): Promise<Result[]> => {
  const { total } = await fillBus(
    system,
    createSample({
      ...PLAIN_SAMPLE,
      conversations: Math.ceil(events / (1 + MESSAGES_EACH)),
      messagesPerConversation: MESSAGES_EACH,
      exportsPerConversation: 1,
    }),
    log,
  );
  const rates = { on: [] as number[], off: [] as number[] };
  const cpu = { on: [] as number[], off: [] as number[] };
  let runs = 0;
  const measure = async (landing: "on" | "off"): Promise<void> => {
    runs += 1;
    const { rate, ingest, server } = await runIngest(system, total, {
      KAFKA_GROUP_ID: `bench-landing-${runs}`,
      LANDING: landing,
    });
    rates[landing].push(rate);
    cpu[landing].push(ingest + server);
    log(
      `landing ${landing}: ${rate.toFixed(0)} events/s, CPU seconds: ingest ${ingest.toFixed(1)}, ClickHouse ${server.toFixed(1)}`,
    );
  };
  // The very first run fills caches.
  await measure("on");
  rates.on.length = 0;
  cpu.on.length = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const order = round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const);
    for (const landing of order) await measure(landing);
  }
  const pairs = rates.on.map((rate, round) => rate / (rates.off[round] ?? Number.NaN));
  log(`ratios by round: ${pairs.map((pair) => pair.toFixed(2)).join(" ")}`);
  log(`CPU seconds without / with: ${(median(cpu.off) / median(cpu.on)).toFixed(2)}`);
  const ratio = median(pairs);
  return [
    {
      name: "landing_cost",
      ours: median(rates.on),
      peer: median(rates.off),
      ratio,
      goal: ">=0.8",
      reached: ratio >= 0.8,
    },
  ];
};
