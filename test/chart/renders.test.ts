import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { EXAMPLES, helm, kubeconform, manifestsOf, renderExample } from "./examples.ts";
import { exampleFile, renderChart, runProgram } from "./helm.ts";
import { KUBE_VERSIONS, prepareKubeSchemas } from "./kube-schemas.ts";
import { CHART } from "./values-table.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const GOLDEN = join(ROOT, "deploy/charts/golden");
/** Compared completely; services-of-others.test.ts tests objects that only other examples render. */
const GOLDEN_EXAMPLES = ["minimal", "production"];
const OTHER_KINDS = [
  "ExternalSecret",
  "HTTPRoute",
  "KafkaTopic",
  "KafkaUser",
  "PrometheusRule",
  "ScaledObject",
  "ServiceMonitor",
  "TriggerAuthentication",
];

describe.skipIf(helm === null)("renders", () => {
  it.each(EXAMPLES)("%s without a word of helm lint --strict", (example) => {
    const { stdout, stderr, code } = runProgram(helm ?? "", [
      "lint",
      CHART,
      "--strict",
      "--quiet",
      `--values=${exampleFile(example)}`,
      // helm lint knows no custom resources and has no option for them.
      ...["externalSecret", "serviceMonitor", "prometheusRule", "httpRoute", "ingest.keda", "jobs.keda"].map(
        (path) => `--set=${path}.enabled=false`,
      ),
      "--set=strimzi.topics.enabled=false,strimzi.users.enabled=false",
      ...withSecretsOf(example),
    ]);
    expect(`${stdout}${stderr}`).toBe("");
    expect(code).toBe(0);
  });

  it.each(GOLDEN_EXAMPLES)("%s as in deploy/charts/golden, as make generate writes it", async (example) => {
    const set = { "prometheusRule.enabled": false, "dashboards.enabled": false };
    const { stdout, stderr } = renderChart(helm ?? "", example, { set });
    expect(stderr).toBe("");
    await expect(stdout).toMatchFileSnapshot(join(GOLDEN, `${example}.yaml`));
  });

  it("alerts of this namespace with the address of each runbook, and every dashboard", () => {
    const manifests = manifestsOf("production");
    const rules = JSON.stringify(manifests.find(({ kind }) => kind === "PrometheusRule")?.spec?.groups);
    const files = globSync("files/alerts/*.yaml", { cwd: CHART }).map(
      (path) => parse(readFileSync(join(CHART, path), "utf8")) as { groups: unknown[] },
    );
    const wanted = JSON.stringify(files.flatMap(({ groups }) => groups))
      .replaceAll(/job(=~?)\\"conversation-export-/g, (all) => `namespace=\\"export\\",${all}`)
      .replaceAll("docs/runbooks/", "https://wiki.example.com/conversation-export/runbooks/");
    expect(files).not.toEqual([]);
    const sorted = (text: string): unknown[] =>
      (JSON.parse(text) as unknown[]).map((group) => JSON.stringify(sortKeys(group))).sort();
    expect(sorted(rules)).toEqual(sorted(wanted));
    const dashboards = manifests
      .filter(({ metadata }) => metadata.labels?.["grafana_dashboard"] === "1")
      .flatMap(({ data }) => Object.entries(data ?? {}))
      .map(([name, text]): [string, unknown] => [name, JSON.parse(text)]);
    expect(Object.fromEntries(dashboards)).toEqual(
      Object.fromEntries(
        globSync("files/dashboards/*.json", { cwd: CHART }).map((path) => [
          basename(path),
          JSON.parse(readFileSync(join(CHART, path), "utf8")) as unknown,
        ]),
      ),
    );
  });
});

describe.skipIf(helm === null || kubeconform === null)("Kubernetes", () => {
  let locations: ReadonlyMap<string, string>;
  beforeAll(async () => {
    locations = await prepareKubeSchemas();
  }, 300_000);

  it.each(KUBE_VERSIONS)("%s takes every example", (version) => {
    const args = ["-strict", "-summary", "-schema-location", locations.get(version) ?? ""];
    const check = (render: string) =>
      runProgram(kubeconform ?? "", [...args, "-skip", OTHER_KINDS.join(",")], render);
    const { code, stdout, stderr } = check(
      EXAMPLES.map((example) => renderExample(example).stdout).join("\n"),
    );
    expect(`${stdout}${stderr}`).toMatch(/Invalid: 0, Errors: 0/);
    expect(code).toBe(0);
    const misspelt =
      "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nautomountServiceAccountTokens: false\n";
    expect(check(misspelt).stdout).toContain("automountServiceAccountTokens");
  }, 120_000);

  it("takes no older version than the chart says", () => {
    expect(renderChart(helm ?? "", "minimal", { kubeVersion: "1.29.0" }).stderr).toContain("kubeVersion");
  });
});

/** Replaces Secrets that other resources create, which helm lint cannot know. */
const withSecretsOf = (example: string): string[] => {
  const values = parse(readFileSync(exampleFile(example), "utf8")) as {
    externalSecret?: { data?: Record<string, unknown> };
    strimzi?: unknown;
  };
  const users = "--set=kafka.sasl.username=export,kafka.sasl.existingSecret.name=one";
  const secrets = Object.keys(values.externalSecret?.data ?? {}).map((id) => {
    const user = /^clickhouse-(\w+)-password$/.exec(id)?.[1];
    const paths: Readonly<Record<string, string>> = {
      "kafka-sasl-password": "kafka.sasl",
      ...Object.fromEntries(
        Object.entries({ ingest: "ingest", "export-api": "exportApi", jobs: "jobs", ops: "ops" }).flatMap(
          ([component, name]) => [
            [`kafka-${component}-password`, `kafka.sasl.users.${name}`],
            ...(component === "ingest" ? [] : [[`redis-${component}-password`, `redis.users.${name}`]]),
          ],
        ),
      ),
      "redis-sentinel-password": "redis.sentinel",
      "cursor-secret": "cursorSecret",
      "suppression-secret": "suppressionSecret",
      "board-password": "jobs.board",
    };
    return `--set=${user === undefined ? paths[id] : `clickhouse.users.${user}`}.existingSecret.name=one`;
  });
  return values.strimzi === undefined ? secrets : [users, ...secrets];
};

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sortKeys(one)]),
  );
};
