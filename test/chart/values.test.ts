import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { documentedVariables } from "./documented-variables.ts";
import { renderValuesPage } from "./values-page.ts";
import { readChartValues } from "./values-table.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Variables that the templates set, from other values or for each pod. */
const SET_BY_CHART = [
  "KAFKA_BROKERS KAFKA_GROUP_ID KAFKA_TLS KAFKA_CA_FILE KAFKA_CERT_FILE KAFKA_KEY_FILE",
  "KAFKA_SASL_MECHANISM KAFKA_SASL_USERNAME KAFKA_SASL_PASSWORD KAFKA_AWS_REGION",
  "KAFKA_OAUTH_TOKEN_URL KAFKA_OAUTH_PLAIN_HTTP KAFKA_OAUTH_CLIENT_ID KAFKA_OAUTH_CLIENT_SECRET",
  "KAFKA_OAUTH_CLIENT_AUTH KAFKA_OAUTH_SCOPE KAFKA_OAUTH_PARAMETERS KAFKA_OAUTH_EXTENSIONS",
  "TOPIC_CONVERSATIONS TOPIC_MESSAGES TOPIC_END_USERS TOPIC_SMS_TRIGGERS",
  "CLICKHOUSE_URL CLICKHOUSE_USER CLICKHOUSE_PASSWORD CLICKHOUSE_CA_FILE CLUSTER CLICKHOUSE_SHARD_URLS",
  "CLICKHOUSE_LOOKUP_URL CLICKHOUSE_LOOKUP_USER CLICKHOUSE_LOOKUP_PASSWORD",
  "CLICKHOUSE_INTAKE_URL CLICKHOUSE_INTAKE_USER CLICKHOUSE_INTAKE_PASSWORD",
  "REDIS_URL REDIS_USERNAME REDIS_PASSWORD REDIS_SENTINEL_PASSWORD REDIS_CA_FILE",
  "SUPPRESSION_SECRET CURSOR_SECRET CURSOR_SECRET_PREVIOUS BOARD_USER BOARD_PASSWORD",
  "BOARD_PASSWORD_PREVIOUS BOARD_PORT",
  "OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_CERTIFICATE",
  "OTEL_TRACES_SAMPLER_ARG OTEL_RESOURCE_ATTRIBUTES OTEL_SERVICE_NAME",
  "BACKFILL_LOCATIONS AWS_ENDPOINT_URL_S3 AWS_REGION TRUSTED_PROXIES HOST PORT METRICS_PORT SHUTDOWN_DEADLINE_MS",
].flatMap((line) => line.split(" "));

describe("the files of the chart", () => {
  it("has the version of the project", () => {
    const { version } = JSON.parse(read("package.json")) as { version: string };
    expect(parse(read("deploy/charts/conversation-export/Chart.yaml"))).toMatchObject({
      appVersion: version,
    });
  });

  it("has its values documented as make generate writes them", async () => {
    await expect(renderValuesPage()).toMatchFileSnapshot(join(ROOT, "docs/chart-values.md"));
  });

  type Schema = {
    readonly $ref?: string;
    readonly type?: string | readonly string[];
    readonly additionalProperties?: boolean | Schema;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
    readonly definitions?: Readonly<Record<string, Schema>>;
  };
  const schema = JSON.parse(read("deploy/charts/conversation-export/values.schema.json")) as Schema;
  const follow = (part: Schema): Schema =>
    part.$ref === undefined ? part : (schema.definitions?.[part.$ref.split("/").at(-1) ?? ""] ?? {});
  const leavesOf = (part: Schema, path: string): string[] => {
    const { properties } = follow(part);
    if (properties === undefined) return [path];
    expect(follow(part).additionalProperties, `additionalProperties of ${path}`).toBe(false);
    return Object.entries(properties).flatMap(([name, one]) =>
      leavesOf(one, path === "" ? name : `${path}.${name}`),
    );
  };
  const isBelow = (path: string, above: string): boolean => path === above || path.startsWith(`${above}.`);

  it("has a schema of exactly the values that there are", () => {
    const leaves = leavesOf(schema, "");
    const values = readChartValues().map(({ path }) => path);
    // Helm adds `global` by itself.
    expect(
      leaves.filter((leaf) => leaf !== "global" && !values.some((value) => isBelow(leaf, value))),
    ).toEqual([]);
    expect(values.filter((value) => !leaves.some((leaf) => isBelow(leaf, value)))).toEqual([]);
  });

  it("takes in config every variable of docs/configuration.md that the chart does not set itself", () => {
    const of = (path: string): string[] =>
      leavesOf(schema, "").flatMap((leaf) =>
        leaf.startsWith(`${path}.`) ? [leaf.slice(path.length + 1)] : [],
      );
    const shared = of("config");
    for (const [key, service] of [
      ["ingest", "ingest"],
      ["exportApi", "export-api"],
      ["jobs", "jobs"],
    ] as const) {
      const taken = [...of(`${key}.config`), ...shared, ...SET_BY_CHART].sort();
      const documented = documentedVariables(service);
      expect(
        documented.filter((name) => !taken.includes(name)),
        `${service}: not taken`,
      ).toEqual([]);
      expect(
        of(`${key}.config`).filter((name) => !documented.includes(name)),
        `${service}: unknown`,
      ).toEqual([]);
    }
    const ops = documentedVariables("ops");
    expect(
      shared.filter(
        (name) =>
          !ops.includes(name) &&
          !documentedVariables("ingest").includes(name) &&
          !documentedVariables("jobs").includes(name),
      ),
    ).toEqual([]);
  });
});
