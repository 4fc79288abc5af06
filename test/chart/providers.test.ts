import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { helm } from "./examples.ts";
import { readManifests, renderChart } from "./helm.ts";
import { renderedContainers } from "./rendered-env.ts";

const PAGE = join(import.meta.dirname, "../../docs/installation.md");
const SECTION = /^## Kafka of a provider\n([\s\S]*?)(?=^## )/m;
const [, section = ""] = SECTION.exec(readFileSync(PAGE, "utf8")) ?? [];
const blocks = [...section.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(
  ([, text = ""]) => parse(text) as { kafka: { brokers: string[]; sasl: { mechanism: string } } },
);

describe.skipIf(helm === null)("the values for Kafka of a provider", () => {
  it("are there for six", () => {
    expect(blocks).toHaveLength(6);
  });

  it.each(
    blocks.map((block) => [block.kafka.brokers.join(), block] as const),
  )("fit the chart: %s", (_at, set) => {
    const { code, stdout, stderr } = renderChart(helm ?? "", "minimal", { set });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const logins = renderedContainers(readManifests(stdout)).filter(
      ({ plain }) => plain["KAFKA_BROKERS"] !== undefined,
    );
    expect(logins.length).toBeGreaterThanOrEqual(4);
    for (const { plain } of logins) {
      expect(plain).toMatchObject({
        KAFKA_BROKERS: set.kafka.brokers.join(),
        KAFKA_TLS: "on",
        KAFKA_SASL_MECHANISM: set.kafka.sasl.mechanism,
      });
    }
  });
});
