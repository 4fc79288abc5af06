import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "vitest";
import { findProgram, type Manifest, type Outcome, readManifests, renderChart } from "./helm.ts";
import { CHART } from "./values-table.ts";

/** null: not installed, its tests are skipped. */
export const helm = findProgram("helm");
export const kubeconform = findProgram("kubeconform");

const missing = [helm === null ? "helm" : "", kubeconform === null ? "kubeconform" : ""].filter(Boolean);
if (missing.length > 0) {
  const message = `${missing.join(" and ")} not found in .cache/bin or on the PATH`;
  if (process.env["CHART"] === "required") throw new Error(message);
  console.warn(
    `\n*** SKIPPED: the chart is not rendered or checked, ${message}: make chart installs what is missing ***\n`,
  );
}

export const EXAMPLES = globSync("*.yaml", { cwd: join(CHART, "examples") })
  .map((name) => basename(name, ".yaml"))
  .sort();

const rendered = new Map<string, Outcome>();

export const renderExample = (example: string): Outcome => {
  const outcome = rendered.get(example) ?? renderChart(helm ?? "", example);
  rendered.set(example, outcome);
  return outcome;
};

/** The render must succeed without a warning. */
export const manifestsOf = (example: string): Manifest[] => {
  const { code, stdout, stderr } = renderExample(example);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return readManifests(stdout);
};

export const manifestsWith = (example: string, set: Readonly<Record<string, unknown>>): Manifest[] =>
  readManifests(renderChart(helm ?? "", example, { set }).stdout);
