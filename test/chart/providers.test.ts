import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { helm } from "./examples.ts";
import { readManifests, renderChart } from "./helm.ts";
import { renderedContainers } from "./rendered-env.ts";
import { CHART } from "./values-table.ts";

const FOLDER = join(CHART, "examples/kafka");
type Values = {
  readonly kafka: { readonly brokers: string[]; readonly sasl: { readonly mechanism: string } };
};
const providers = globSync("*.yaml", { cwd: FOLDER })
  .sort()
  .map(
    (file) => [basename(file, ".yaml"), parse(readFileSync(join(FOLDER, file), "utf8")) as Values] as const,
  );

describe.skipIf(helm === null)("the values for Kafka of a provider", () => {
  it("are those that docs/installation.md names", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/installation.md"), "utf8");
    const [, section = ""] = /^## Kafka of a provider\n([\s\S]*?)(?=^## )/m.exec(page) ?? [];
    const named = [...section.matchAll(/`([a-z-]+)\.yaml`/g)].map(([, name = ""]) => name);
    expect(named.toSorted()).toEqual(providers.map(([name]) => name));
  });

  it.each(providers)("fit the chart: %s", (_name, set) => {
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
