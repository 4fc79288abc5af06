import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { rootCertificates } from "node:tls";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { generatedFiles, presentCopies } from "./generate.ts";
import {
  exampleFile,
  findProgram,
  type Manifest,
  OTHER_APIS,
  type Outcome,
  podOf,
  readManifests,
  renderChart,
  runProgram,
} from "./helm.ts";
import { KUBE_VERSIONS, prepareKubeSchemas } from "./kube-schemas.ts";
import { type RenderedContainer, renderedContainers } from "./rendered-env.ts";
import { CHART, readChartValues } from "./values-table.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const GOLDEN = join(ROOT, "deploy/charts/golden");
const EXAMPLES = globSync("*.yaml", { cwd: join(CHART, "examples") })
  .map((name) => basename(name, ".yaml"))
  .sort();
/** Kinds of other projects, whose schemas are not among those of Kubernetes. */
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
/** Not in the tables of docs/configuration.md: where the AWS SDK finds credentials. */
const AWS_VARIABLES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const helm = findProgram("helm");
const kubeconform = findProgram("kubeconform");
const missing = [helm === null ? "helm" : "", kubeconform === null ? "kubeconform" : ""].filter(Boolean);
if (missing.length > 0) {
  const message = `${missing.join(" and ")} not found in .cache/bin or on the PATH`;
  if (process.env["CHART"] === "required") throw new Error(message);
  console.warn(
    `\n*** SKIPPED: the chart is not rendered or checked, ${message}: make chart installs what is missing ***\n`,
  );
}

const rendered = new Map<string, Outcome>();
/** The render of an example as it is, made once. */
const renderOf = (example: string): Outcome => {
  const outcome = rendered.get(example) ?? renderChart(helm ?? "", example);
  rendered.set(example, outcome);
  return outcome;
};
const manifestsOf = (example: string): Manifest[] => {
  const { code, stdout, stderr } = renderOf(example);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return readManifests(stdout);
};

describe("the files of the chart", () => {
  it("has the version of the project", () => {
    const { version } = JSON.parse(read("package.json")) as { version: string };
    expect(parse(read("deploy/charts/conversation-export/Chart.yaml"))).toMatchObject({
      appVersion: version,
    });
  });

  it("carries what is generated as it would be generated now (node test/support/chart/generate.ts)", () => {
    const files = generatedFiles();
    for (const [path, content] of files) expect(read(path), path).toBe(content);
    expect(presentCopies()).toEqual([...files.keys()].filter((path) => path.includes("/files/")).sort());
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
      const documented = variablesOf(service);
      expect(
        documented.filter((name) => !taken.includes(name)),
        `${service}: not taken`,
      ).toEqual([]);
      expect(
        of(`${key}.config`).filter((name) => !documented.includes(name)),
        `${service}: unknown`,
      ).toEqual([]);
    }
    const ops = variablesOf("ops");
    expect(
      shared.filter(
        (name) =>
          !ops.includes(name) && !variablesOf("ingest").includes(name) && !variablesOf("jobs").includes(name),
      ),
    ).toEqual([]);
  });
});

/** Variables that follow from other values, or from how pods are made. */
const SET_BY_CHART = [
  "KAFKA_BROKERS KAFKA_GROUP_ID KAFKA_TLS KAFKA_CA_FILE KAFKA_CERT_FILE KAFKA_KEY_FILE",
  "KAFKA_SASL_MECHANISM KAFKA_SASL_USERNAME KAFKA_SASL_PASSWORD",
  "TOPIC_CONVERSATIONS TOPIC_MESSAGES TOPIC_END_USERS TOPIC_SMS_TRIGGERS",
  "CLICKHOUSE_URL CLICKHOUSE_USER CLICKHOUSE_PASSWORD CLICKHOUSE_CA_FILE CLUSTER CLICKHOUSE_SHARD_URLS",
  "CLICKHOUSE_INTAKE_URL CLICKHOUSE_INTAKE_USER CLICKHOUSE_INTAKE_PASSWORD",
  "REDIS_URL REDIS_USERNAME REDIS_PASSWORD REDIS_SENTINEL_PASSWORD REDIS_CA_FILE",
  "SUPPRESSION_SECRET CURSOR_SECRET CURSOR_SECRET_PREVIOUS BOARD_USER BOARD_PASSWORD",
  "OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_CERTIFICATE",
  "OTEL_TRACES_SAMPLER_ARG OTEL_RESOURCE_ATTRIBUTES OTEL_SERVICE_NAME",
  "AWS_ENDPOINT_URL_S3 AWS_REGION TRUSTED_PROXIES HOST PORT METRICS_PORT SHUTDOWN_DEADLINE_MS",
].flatMap((line) => line.split(" "));

const variablesOf = (service: string): string[] => {
  const section = read("docs/configuration.md")
    .split(/^## /m)
    .find((part) => part.startsWith(`${service}\n`));
  return [...(section ?? "").matchAll(/^\| `(\w+)` \|/gm)].map(([, name = ""]) => name);
};

describe.skipIf(helm === null)("renders", () => {
  it.each(EXAMPLES)("%s without a word of helm lint --strict", (example) => {
    const { stdout, stderr, code } = runProgram(helm ?? "", [
      "lint",
      CHART,
      "--strict",
      "--quiet",
      `--values=${exampleFile(example)}`,
      // lint knows no custom resources, and has no option to name them.
      ...["externalSecret", "serviceMonitor", "prometheusRule", "httpRoute", "ingest.keda", "jobs.keda"].map(
        (path) => `--set=${path}.enabled=false`,
      ),
      "--set=strimzi.topics.enabled=false,strimzi.users.enabled=false",
      ...withSecretsOf(example),
    ]);
    expect(`${stdout}${stderr}`).toBe("");
    expect(code).toBe(0);
  });

  // UPDATE=1 writes them anew. Alerts and dashboards have tests of their own.
  it.each(EXAMPLES)("%s as in deploy/charts/golden", (example) => {
    const set = { "prometheusRule.enabled": false, "dashboards.enabled": false };
    const { stdout, stderr } = renderChart(helm ?? "", example, { set });
    expect(stderr).toBe("");
    const file = join(GOLDEN, `${example}.yaml`);
    if (process.env["UPDATE"] === "1") {
      mkdirSync(GOLDEN, { recursive: true });
      writeFileSync(file, stdout);
    }
    expect(stdout).toBe(readFileSync(file, "utf8"));
  });

  it("alerts of this namespace with the address of each runbook, and every dashboard", () => {
    const manifests = manifestsOf("production");
    const rules = JSON.stringify(manifests.find(({ kind }) => kind === "PrometheusRule")?.spec?.groups);
    const files = globSync("deploy/alerts/*.yaml", { cwd: ROOT }).map(
      (path) => parse(read(path)) as { groups: unknown[] },
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
        globSync("deploy/dashboards/*.json", { cwd: ROOT }).map((path) => [
          basename(path),
          JSON.parse(read(path)) as unknown,
        ]),
      ),
    );
  });

  it.each(EXAMPLES)("%s with pods that a restricted namespace takes", (example) => {
    const pods = manifestsOf(example).flatMap((manifest) => podOf(manifest) ?? []);
    expect(pods.length).toBeGreaterThan(5);
    for (const pod of pods) {
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
      });
      for (const container of pod.containers) {
        expect(container).toMatchObject({
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          resources: { requests: { memory: expect.any(String) }, limits: { memory: expect.any(String) } },
        });
        expect(container.image).not.toMatch(/:latest$|:$|^[^:@]+$/);
      }
    }
  });

  it.each(
    EXAMPLES,
  )("%s with variables that each service accepts, all of them documented", async (example) => {
    const manifests = manifestsOf(example);
    const containers = renderedContainers(manifests);
    expect(new Set(containers.map(({ service }) => service))).toEqual(
      new Set(["ingest", "export-api", "jobs", "ops"]),
    );
    for (const container of containers) {
      const known = [...variablesOf(container.service), ...AWS_VARIABLES];
      const names = [...Object.keys(container.plain), ...Object.keys(container.secret)];
      expect(
        names.filter((name) => !known.includes(name)),
        container.workload,
      ).toEqual([]);
      for (const reader of await readersOf(container))
        expect(() => reader(environmentOf(container)), container.workload).not.toThrow();
    }
  });

  it.each(EXAMPLES)("%s with hooks that need nothing but hooks of lower weight", (example) => {
    const manifests = manifestsOf(example);
    const weightOf = ({ metadata }: Manifest): number | null =>
      metadata.annotations?.["helm.sh/hook"] === undefined
        ? null
        : Number(metadata.annotations["helm.sh/hook-weight"] ?? 0);
    const made = new Map(
      manifests.flatMap((one): [string, Manifest][] => {
        if (one.kind === "ExternalSecret") {
          const target = (one as unknown as { spec: { target: { name: string } } }).spec.target.name;
          return [[`Secret ${target}`, one]];
        }
        return [[`${one.kind} ${one.metadata.name}`, one]];
      }),
    );
    const jobs = manifests.filter(({ kind }) => kind === "Job");
    expect(jobs.length).toBeGreaterThan(0);
    for (const job of jobs) {
      expect(job.metadata.annotations).toMatchObject({
        "helm.sh/hook": "pre-install,pre-upgrade",
        "helm.sh/hook-delete-policy": "before-hook-creation",
      });
      const [container] = podOf(job)?.containers ?? [];
      const needed = [
        ...(container?.envFrom ?? []).map(({ configMapRef }) => `ConfigMap ${configMapRef.name}`),
        ...(container?.env ?? []).flatMap(({ valueFrom }) =>
          valueFrom?.secretKeyRef === undefined ? [] : `Secret ${valueFrom.secretKeyRef.name}`,
        ),
        `ServiceAccount ${podOf(job)?.serviceAccountName}`,
      ];
      for (const name of needed) {
        const one = made.get(name);
        if (one !== undefined)
          expect(weightOf(one), `${name} of ${job.metadata.name}`).toBeLessThan(weightOf(job) ?? 0);
      }
    }
  });

  it("a Secret of its own only where it is asked to, with what the values hold", () => {
    for (const example of EXAMPLES)
      expect(manifestsOf(example).filter(({ kind }) => kind === "Secret")).toEqual([]);
    const set = {
      "secret.create": true,
      suppressionSecret: { value: "s".repeat(32), existingSecret: { name: "" } },
      "clickhouse.users.migrator": { password: "m", existingSecret: { name: "" } },
    };
    const secrets = readManifests(renderChart(helm ?? "", "minimal", { set }).stdout).filter(
      ({ kind }) => kind === "Secret",
    );
    expect(secrets.map(({ metadata, data }) => [metadata.name, data])).toEqual(
      expect.arrayContaining([
        [
          "demo-conversation-export",
          { "clickhouse-migrator-password": btoa("m"), "suppression-secret": btoa("s".repeat(32)) },
        ],
        ["demo-conversation-export-hooks", { "clickhouse-migrator-password": btoa("m") }],
      ]),
    );
  });

  it("no object without the labels of the release, and no two of one name", () => {
    for (const example of EXAMPLES) {
      const manifests = manifestsOf(example);
      const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(names).toEqual([...new Set(names)]);
      for (const { kind, metadata } of manifests) {
        expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
          "app.kubernetes.io/instance": "demo",
          "app.kubernetes.io/name": "conversation-export",
          "helm.sh/chart": expect.stringMatching(/^conversation-export-/),
        });
        expect(metadata.name.length).toBeLessThan(64);
      }
    }
  });

  it("what Jobs of hooks need so that nothing of it stays, and lets them out of a closed namespace", () => {
    for (const example of EXAMPLES) {
      const manifests = manifestsOf(example);
      const hooks = manifests.filter(
        ({ kind, metadata }) => kind !== "Pod" && metadata.annotations?.["helm.sh/hook"] !== undefined,
      );
      for (const { kind, metadata } of hooks) {
        expect(metadata.annotations?.["helm.sh/hook-delete-policy"], `${kind} ${metadata.name}`).toBe(
          kind === "Job" ? "before-hook-creation" : "before-hook-creation,hook-succeeded",
        );
      }
      const namesOf = (wanted: string) =>
        hooks.filter(({ kind }) => kind === wanted).map(({ metadata }) => metadata.name);
      expect(namesOf("NetworkPolicy")).toEqual(namesOf("Job"));
    }
  });

  it("a user of Kafka for each component where there is one, and what all share elsewhere", () => {
    const own = (name: string) => ({ username: name, existingSecret: { name: `secret-of-${name}` } });
    const set = {
      "kafka.sasl": {
        mechanism: "plain",
        username: "shared",
        existingSecret: { name: "secret-of-shared" },
        users: { ingest: own("in"), ops: own("operator") },
      },
    };
    const containers = renderedContainers(readManifests(renderChart(helm ?? "", "minimal", { set }).stdout));
    const users = new Map(
      containers
        .filter(({ plain }) => plain["KAFKA_BROKERS"] !== undefined)
        .map(({ workload, plain, secret }) => [
          workload.replace("demo-conversation-export-", ""),
          [plain["KAFKA_SASL_USERNAME"], secret["KAFKA_SASL_PASSWORD"]?.name],
        ]),
    );
    expect(Object.fromEntries(users)).toEqual({
      "Deployment ingest": ["in", "secret-of-in"],
      "Deployment export-api": ["shared", "secret-of-shared"],
      "Deployment jobs": ["shared", "secret-of-shared"],
      "CronJob ops": ["operator", "secret-of-operator"],
      "Job topics": ["operator", "secret-of-operator"],
      "Pod test-doctor": ["operator", "secret-of-operator"],
    });
  });

  it("no empty variable", () => {
    const set = {
      "ingest.config.BATCH_MAX_AGE_MS": "",
      "exportApi.config.PUBLIC_BASE_URL": "",
      "config.LOG_LEVEL": "",
    };
    const configMaps = readManifests(renderChart(helm ?? "", "minimal", { set }).stdout).filter(
      ({ kind }) => kind === "ConfigMap",
    );
    expect(configMaps.length).toBeGreaterThan(3);
    for (const { data } of configMaps) expect(Object.values(data ?? {})).not.toContain("");
  });

  it("what else is given for pods, and no user where the cluster decides", () => {
    const part = {
      nodeSelector: { disk: "fast" },
      tolerations: [{ key: "export", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
      priorityClassName: "high",
      extraEnv: [{ name: "MORE", value: "1" }],
      extraVolumes: [{ name: "more", emptyDir: {} }],
      extraVolumeMounts: [{ name: "more", mountPath: "/more" }],
    };
    const components = ["ingest", "exportApi", "jobs", "ops"];
    const set = {
      ...Object.fromEntries(
        components.flatMap((one) => Object.entries(part).map(([key, value]) => [`${one}.${key}`, value])),
      ),
      runAsUser: null,
    };
    const pods = readManifests(renderChart(helm ?? "", "minimal", { set }).stdout)
      .filter(({ metadata }) => !metadata.name.endsWith("-test-ready"))
      .flatMap((manifest) => podOf(manifest) ?? []);
    expect(pods).toHaveLength(7);
    const { extraEnv, extraVolumes, extraVolumeMounts, ...spec } = part;
    for (const pod of pods) {
      expect(pod).toMatchObject(spec);
      expect(pod.volumes).toEqual(expect.arrayContaining(extraVolumes));
      expect(pod.containers[0]).toMatchObject({
        env: expect.arrayContaining(extraEnv),
        volumeMounts: expect.arrayContaining(extraVolumeMounts),
      });
      expect(pod.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    }
  });

  it("traces of the services alone, only with an address, and lets them out", () => {
    const set = {
      traces: {
        endpoint: "https://collector.tracing:4317",
        sampleRatio: 0.25,
        attributes: { "deployment.environment.name": "a b,c" },
        headers: { existingSecret: { name: "collector", key: "h" } },
        ca: { existingConfigMap: "company-ca" },
      },
      "networkPolicy.tracesTo": [{ ipBlock: { cidr: "10.0.11.0/24" } }],
    };
    const given = readManifests(renderChart(helm ?? "", "minimal", { set }).stdout);
    const traced = renderedContainers(given).filter(
      ({ plain, secret }) => plain["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? secret["OTEL_EXPORTER_OTLP_HEADERS"],
    );
    expect(traced.map(({ service }) => service).sort()).toEqual(["export-api", "ingest", "jobs"]);
    for (const { plain, secret, files } of traced) {
      expect(plain).toMatchObject({
        OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.tracing:4317",
        OTEL_TRACES_SAMPLER_ARG: "0.25",
        OTEL_RESOURCE_ATTRIBUTES:
          "k8s.namespace.name=export,k8s.pod.name=$(POD_NAME),deployment.environment.name=a%20b%2Cc",
      });
      expect(secret).toMatchObject({ OTEL_EXPORTER_OTLP_HEADERS: { name: "collector", key: "h" } });
      expect(files).toMatchObject({
        [plain["OTEL_EXPORTER_OTLP_CERTIFICATE"] ?? ""]: { kind: "ConfigMap", name: "company-ca" },
      });
    }
    const out = { to: [{ ipBlock: { cidr: "10.0.11.0/24" } }], ports: [{ port: 4317, protocol: "TCP" }] };
    const open = given.filter(
      ({ kind, spec }) => kind === "NetworkPolicy" && JSON.stringify(spec).includes(JSON.stringify(out.to)),
    );
    expect(new Set(open.map(({ metadata }) => metadata.labels?.["app.kubernetes.io/component"]))).toEqual(
      new Set(["ingest", "export-api", "jobs"]),
    );
    for (const { spec } of open) expect((spec as { egress?: unknown[] }).egress).toContainEqual(out);
    expect(JSON.stringify(manifestsOf("minimal"))).not.toContain("OTEL_");
  });

  it("replicas only where no autoscaler decides", () => {
    const replicas = (example: string) =>
      manifestsOf(example)
        .filter(({ kind }) => kind === "Deployment")
        .map(({ metadata, spec }) => [
          metadata.name.replace("demo-conversation-export-", ""),
          spec?.replicas,
        ]);
    expect(Object.fromEntries(replicas("minimal"))).toEqual({ ingest: 2, "export-api": 2, jobs: 2 });
    expect(Object.fromEntries(replicas("production"))).toEqual({
      ingest: 6,
      "export-api": undefined,
      jobs: 2,
    });
    expect(Object.fromEntries(replicas("strimzi-keda"))).toEqual({
      ingest: undefined,
      "export-api": 2,
      jobs: undefined,
    });
  });
});

/** Secrets in the place of those that other resources make, which lint cannot know. */
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
      "redis-password": "redis",
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

type Reader = (env: Readonly<Record<string, string>>) => unknown;

/** What reads the variables of a container: the whole of a service, of a Job of export-ops what its command reads. */
const readersOf = async ({ service, args }: RenderedContainer): Promise<Reader[]> => {
  const module = (await import(
    pathToFileURL(join(ROOT, "services", service, "src/config.ts")).href
  )) as Record<string, Reader>;
  const of = (name: string): Reader => {
    const reader = module[name];
    if (reader === undefined) throw new Error(`services/${service} has no ${name}`);
    return reader;
  };
  if (service !== "ops") return [of("readConfig")];
  if (args.includes("migrate")) return [of("readWarehouseConfig")];
  if (args.includes("topics")) return [of("readBusConfig")];
  return Object.values(module).filter((one) => typeof one === "function");
};

/** The variables with something for each Secret, and a file of certificates where one would be mounted. */
const environmentOf = ({ plain, secret }: RenderedContainer): Record<string, string> => {
  const folder = join(ROOT, ".local/chart-test");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "ca.crt");
  writeFileSync(file, rootCertificates[0] ?? "");
  return {
    ...Object.fromEntries(
      Object.entries(plain).map(([name, value]) => [name, name.endsWith("_CA_FILE") ? file : value]),
    ),
    ...Object.fromEntries(Object.keys(secret).map((name) => [name, "0123456789abcdef0123456789abcdef"])),
  };
};

describe.skipIf(helm === null || kubeconform === null)("Kubernetes", () => {
  let locations: ReadonlyMap<string, string>;
  beforeAll(async () => {
    locations = await prepareKubeSchemas();
  }, 300_000);

  it.each(KUBE_VERSIONS)("%s takes every example", (version) => {
    const args = ["-strict", "-summary", "-schema-location", locations.get(version) ?? ""];
    const check = (render: string) =>
      runProgram(kubeconform ?? "", [...args, "-skip", OTHER_KINDS.join(",")], render);
    const { code, stdout, stderr } = check(EXAMPLES.map((example) => renderOf(example).stdout).join("\n"));
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

const NONE = { name: "" };

/** An example, what is set in it, and what the message has to say. */
const REFUSED: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
  ["minimal", { "clickhouse.url": "" }, "clickhouse.url is empty: set it to"],
  [
    "minimal",
    { "clickhouse.url": "http://a:b@c:8123/d" },
    "clickhouse.url holds a user: leave only the host in it",
  ],
  ["minimal", { "kafka.brokers": [] }, "kafka.brokers is empty: list the brokers"],
  ["minimal", { "redis.url": "" }, "redis.url is empty: set it to"],
  ["minimal", { "redis.url": "redis://:secret@redis:6379" }, "redis.url holds a user or a password"],
  [
    "minimal",
    { "cursorSecret.existingSecret": NONE },
    "cursorSecret has no Secret: set cursorSecret.existingSecret.name",
  ],
  ["minimal", { "clickhouse.users.jobs.existingSecret": NONE }, "clickhouse.users.jobs has no Secret"],
  [
    "minimal",
    { "clickhouse.shardUrls": ["http://ch-1:8123"] },
    "clickhouse.shardUrls counts only with clickhouse.cluster",
  ],
  ["minimal", { "redis.username": "export" }, "redis has no Secret: set redis.existingSecret.name"],
  ["minimal", { "kafka.sasl": { mechanism: "plain", username: "export" } }, "kafka.sasl has no Secret"],
  ["minimal", { "kafka.sasl.username": "export" }, "kafka.sasl.mechanism is empty"],
  ["minimal", { "kafka.sasl.users.jobs.username": "export" }, "kafka.sasl.mechanism is empty"],
  [
    "minimal",
    {
      "kafka.sasl": {
        mechanism: "plain",
        users: { ingest: { username: "a", existingSecret: { name: "a" } } },
      },
    },
    "kafka.sasl.username is empty, and so is kafka.sasl.users.exportApi.username: name a user",
  ],
  [
    "production",
    { "kafka.sasl.users.ingest.existingSecret.name": "a" },
    "kafka.sasl.users.ingest has a password, but no username",
  ],
  [
    "strimzi-keda",
    { "kafka.sasl.users.ops": { username: "a", existingSecret: { name: "a" } } },
    "leave users and Secrets out of kafka.sasl",
  ],
  [
    "strimzi-keda",
    { "strimzi.topics.enabled": false, "kafka.createTopics.enabled": true },
    "set strimzi.topics.enabled in its place",
  ],
  ["minimal", { "redis.password": "p" }, "redis.password is set in the values: put it into a Secret"],
  [
    "minimal",
    { "cursorSecret.value": "c".repeat(32) },
    "cursorSecret.value and cursorSecret.existingSecret.name are both set",
  ],
  [
    "minimal",
    { "secret.create": true, cursorSecret: { value: "short", existingSecret: NONE } },
    "cursorSecret.value is too short",
  ],
  ["minimal", { "kafka.tls.ca.existingSecret": "ca" }, "kafka.tls.enabled is false: set it to true"],
  ["minimal", { "clickhouse.ca.existingSecret": "ca" }, "clickhouse.ca counts only with an https: address"],
  ["minimal", { "redis.ca.existingSecret": "ca" }, "redis.ca counts only with a rediss: address"],
  [
    "minimal",
    { "redis.sentinel.existingSecret": { name: "s" } },
    "redis.sentinel counts only with redis+sentinel:",
  ],
  [
    "minimal",
    { "traces.headers.existingSecret.name": "h" },
    "traces.headers counts only with traces.endpoint: set",
  ],
  [
    "minimal",
    { traces: { endpoint: "http://collector:4318", ca: { existingSecret: "ca" } } },
    "traces.ca counts only with an https: address",
  ],
  ["minimal", { "traces.sampleRatio": 2 }, "sampleRatio"],
  ["production", { "redis.ca.existingSecret": "ca" }, "redis.ca names a Secret and a ConfigMap"],
  [
    "production",
    { "exportApi.replicas": 3 },
    "exportApi.replicas and exportApi.autoscaling.enabled are both set",
  ],
  ["strimzi-keda", { "ingest.replicas": 3 }, "ingest.replicas and ingest.keda.enabled are both set"],
  ["strimzi-keda", { "jobs.replicas": 3 }, "jobs.replicas and jobs.keda.enabled are both set"],
  ["strimzi-keda", { "jobs.keda.minReplicas": 9 }, "jobs.keda.minReplicas is larger than maxReplicas"],
  [
    "strimzi-keda",
    { "ingest.keda.maxReplicas": 25 },
    "ingest may have 25 replicas, but each topic has 24 partitions",
  ],
  ["minimal", { "ingest.replicas": 7 }, "lower ingest.replicas, or add partitions"],
  ["strimzi-keda", { "jobs.keda.prometheusAddress": "" }, "jobs.keda.prometheusAddress is empty"],
  ["strimzi-keda", { "serviceMonitor.enabled": false }, "jobs.keda rests on the metrics of jobs"],
  ["minimal", { "exportApi.shutdownSeconds": 75 }, "exportApi.shutdownSeconds is too short to finish pages"],
  ["production", { "exportApi.trustedProxies": [] }, "exportApi.trustedProxies is empty behind an ingress"],
  ["strimzi-keda", { "exportApi.trustedProxies": [] }, "exportApi.trustedProxies is empty behind an ingress"],
  ["production", { "ingress.hosts": [] }, "ingress.hosts is empty"],
  ["strimzi-keda", { "httpRoute.parentRefs": [] }, "httpRoute.parentRefs is empty"],
  ["minimal", { "image.tag": "latest" }, "image.tag is latest"],
  ["minimal", { "kafka.topics.messages": "conversations" }, "kafka.topics names a topic twice"],
  ["strimzi-keda", { "strimzi.cluster": "" }, "strimzi.cluster is empty"],
  ["strimzi-keda", { "kafka.sasl.mechanism": "scram-sha-256" }, "strimzi.users are made for scram-sha-512"],
  ["strimzi-keda", { "kafka.createTopics.enabled": true }, "both make the topics"],
  ["production", { "prometheusRule.runbookBaseUrl": "" }, "prometheusRule.runbookBaseUrl is empty"],
  [
    "production",
    { "externalSecret.secretStoreRef": { kind: "SecretStore", name: "" } },
    "externalSecret.secretStoreRef.name is empty",
  ],
  [
    "production",
    { "externalSecret.data.no-such-key": { key: "a" } },
    "externalSecret.data.no-such-key is no credential",
  ],
  ["minimal", { unknown: 1 }, "unknown"],
  ["minimal", { "clickhouse.users.writer.passwort": "p" }, "passwort"],
  ["minimal", { "ingest.config.BATCH_MAX_RECORD": 1 }, "BATCH_MAX_RECORD"],
  ["minimal", { "ingest.keda.minReplicas": 0 }, "minReplicas"],
];

describe.skipIf(helm === null)("values that cannot work", () => {
  it.each(REFUSED)("%s with %j are refused with what to do", (example, set, message) => {
    const { code, stderr } = renderChart(helm ?? "", example, { set });
    expect(stderr.replaceAll(/\s+/g, " ")).toContain(message);
    expect(code).toBe(1);
  });

  it.each(OTHER_APIS)("name %s where the cluster does not know it", (api) => {
    const example = api.startsWith("external-secrets.io") ? "production" : "strimzi-keda";
    const { code, stderr } = renderChart(helm ?? "", example, {
      apis: OTHER_APIS.filter((one) => one !== api),
    });
    expect(stderr).toContain(`does not know ${api}`);
    expect(code).toBe(1);
  });

  it("are all told at once", () => {
    const { stderr } = renderChart(helm ?? "", "minimal", { set: { "clickhouse.url": "", "redis.url": "" } });
    expect(stderr).toMatch(/clickhouse\.url is empty[\s\S]*redis\.url is empty/);
  });
});
