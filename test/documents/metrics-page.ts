import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(new URL("../../docs/metrics.md", import.meta.url));
const SECTION = /^## (.+)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm;
const ROW = /^\| `([\w:]+)` \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$/gm;

export const SERVICES = ["ingest", "export-api", "jobs"] as const;
export type Service = (typeof SERVICES)[number];

export type MetricRow = {
  readonly services: readonly Service[];
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly meaning: string;
  readonly alerts: readonly string[];
};

/** Those under `Elsewhere` belong to no service. */
const servicesOf = (heading: string): readonly Service[] =>
  heading === "Every process"
    ? SERVICES
    : SERVICES.filter((name) => heading.split(/, | and /).includes(name));

const codes = (cell: string): string[] => [...cell.matchAll(/`([\w:]+)`/g)].map(([, code = ""]) => code);
const links = (cell: string): string[] =>
  [...cell.matchAll(/\[(\w+)\]\(runbooks\/\w+\.md\)/g)].map(([, name = ""]) => name);

export const readMetricsPage = (): MetricRow[] =>
  [...readFileSync(PAGE, "utf8").matchAll(SECTION)].flatMap(([, heading = "", body = ""]) =>
    [...body.matchAll(ROW)].map(([, name = "", type = "", labels = "", meaning = "", alerts = ""]) => ({
      services: servicesOf(heading),
      name,
      type,
      labels: codes(labels),
      meaning,
      alerts: links(alerts),
    })),
  );
