import { createLogger, createMetrics } from "@conversation-export/runtime";
import { createSuppressionGate } from "@conversation-export/suppression";
import { createSession, createCoordination, createSuppressionStore } from "@conversation-export/warehouse";
import { DAY_0, message } from "./records.ts";

/** Reads the suppressions of a URL into memory and prints the cost. */
const [url = "", max = ""] = process.argv.slice(2);
const session = createSession({ url, application: "test" });
const metrics = createMetrics({ service: "test" });
const gate = createSuppressionGate({
  stamps: createCoordination({ session }),
  store: createSuppressionStore({ session }),
  secret: "a secret of the tests",
  maxHeld: Number(max),
  onLost: (error) => {
    throw error;
  },
  metrics,
  log: createLogger({ service: "test", level: "silent" }),
});
/** In bytes. */
const peak = (): number => process.resourceUsage().maxRSS * 1024;
const peakBefore = peak();
const before = performance.now();
await gate.start();
const seconds = (performance.now() - before) / 1000;
const children = ["0", "1", "5", "none"].map((id) =>
  message({ client: "large", time: DAY_0 }, id, DAY_0, "parent"),
);
const suspects = children.map(gate.suspects);
const suppressed = await gate.wouldSuppress(children);
const gauges = Object.fromEntries(
  (await metrics.text())
    .split("\n")
    .filter((line) => line.startsWith("conversation_export_suppression"))
    .map((line) => [line.split("{")[0], Number(line.split(" ").at(-1))]),
);
const grown = peak() - peakBefore;
console.log(JSON.stringify({ seconds, grown, peak: peak(), suspects, suppressed, gauges }));
await gate.stop();
await session.close();
