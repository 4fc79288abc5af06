import { describe, expect, it } from "vitest";
import { EXAMPLES, helm, manifestsOf, manifestsWith } from "./examples.ts";
import { podOf } from "./helm.ts";
import { renderedContainers } from "./rendered-env.ts";

describe.skipIf(helm === null)("the chart renders", () => {
  it("a Secret of its own only where it is asked to, with what the values hold", () => {
    for (const example of EXAMPLES)
      expect(manifestsOf(example).filter(({ kind }) => kind === "Secret")).toEqual([]);
    const set = {
      "secret.create": true,
      suppressionSecret: { value: "s".repeat(32), existingSecret: { name: "" } },
      "clickhouse.users.migrator": { password: "m", existingSecret: { name: "" } },
    };
    const secrets = manifestsWith("minimal", set).filter(({ kind }) => kind === "Secret");
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
    const containers = renderedContainers(manifestsWith("minimal", set));
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

  it("the login by a token for all that go to Kafka, and lets them out to its endpoint", () => {
    const set = {
      "kafka.sasl": {
        mechanism: "oauthbearer",
        oauth: {
          tokenUrl: "https://idp.login.svc:8443/token",
          clientId: "export",
          existingSecret: { name: "idp" },
          scope: "kafka read",
          parameters: { audience: "https://kafka/a b&c" },
          extensions: { logicalCluster: "lkc-1", identityPoolId: "pool-2" },
        },
      },
    };
    const given = manifestsWith("minimal", set);
    const logins = renderedContainers(given).filter(({ plain }) => plain["KAFKA_BROKERS"] !== undefined);
    expect(logins).toHaveLength(6);
    for (const { plain, secret } of logins) {
      expect(plain).toMatchObject({
        KAFKA_SASL_MECHANISM: "oauthbearer",
        KAFKA_OAUTH_TOKEN_URL: "https://idp.login.svc:8443/token",
        KAFKA_OAUTH_CLIENT_ID: "export",
        KAFKA_OAUTH_CLIENT_AUTH: "basic",
        KAFKA_OAUTH_SCOPE: "kafka read",
      });
      const fieldsOf = (name: string) => Object.fromEntries(new URLSearchParams(plain[name]));
      expect(fieldsOf("KAFKA_OAUTH_PARAMETERS")).toEqual(set["kafka.sasl"].oauth.parameters);
      expect(fieldsOf("KAFKA_OAUTH_EXTENSIONS")).toEqual(set["kafka.sasl"].oauth.extensions);
      expect(secret["KAFKA_OAUTH_CLIENT_SECRET"]).toMatchObject({ name: "idp", key: "client-secret" });
      expect(plain).not.toHaveProperty("KAFKA_SASL_USERNAME");
      expect(secret).not.toHaveProperty("KAFKA_SASL_PASSWORD");
    }
    const policies = given.filter(({ kind }) => kind === "NetworkPolicy");
    const open = policies.filter((policy) => JSON.stringify(policy).includes('"port":8443'));
    expect(open.map(({ metadata }) => metadata.name.replace("demo-conversation-export-", "")).sort()).toEqual(
      ["export-api", "ingest", "jobs", "ops", "topics"],
    );
  });

  it("the login by a role of AWS, and lets pods out to its STS", () => {
    const set = {
      "kafka.tls.enabled": true,
      "kafka.sasl": { mechanism: "aws-msk-iam", awsRegion: "eu-central-1" },
      "networkPolicy.loginTo": [{ ipBlock: { cidr: "0.0.0.0/0" } }],
      "serviceAccount.annotations": { "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/export" },
    };
    const given = manifestsWith("minimal", set);
    const logins = renderedContainers(given).filter(({ plain }) => plain["KAFKA_BROKERS"] !== undefined);
    for (const { plain } of logins) {
      expect(plain).toMatchObject({ KAFKA_SASL_MECHANISM: "aws-msk-iam", KAFKA_AWS_REGION: "eu-central-1" });
    }
    const ingest = given.find(
      ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name.endsWith("-ingest"),
    );
    expect(ingest?.spec).toMatchObject({
      egress: expect.arrayContaining([
        { to: set["networkPolicy.loginTo"], ports: [{ port: 443, protocol: "TCP" }] },
      ]),
    });
  });

  it("the user of analysts for those who check rights alone", () => {
    const set = { "clickhouse.users.analyst": { username: "bi", existingSecret: { name: "of-bi" } } };
    const knowing = (values: Readonly<Record<string, unknown>>) =>
      renderedContainers(manifestsWith("minimal", values))
        .filter(({ plain }) => plain["CLICKHOUSE_ANALYST_USER"] === "bi")
        .map(({ workload, secret }) => [
          workload.replace("demo-conversation-export-", ""),
          secret["CLICKHOUSE_ANALYST_PASSWORD"]?.name,
        ]);
    expect(Object.fromEntries(knowing(set))).toEqual({ "CronJob ops": "of-bi", "Pod test-doctor": "of-bi" });
    expect(knowing({})).toEqual([]);
  });

  it("the dashboard that asks ClickHouse only where it is wanted", () => {
    const filesWith = (analytics: boolean): string[] =>
      manifestsWith("production", { "dashboards.analytics": analytics })
        .filter(({ metadata }) => metadata.labels?.["grafana_dashboard"] === "1")
        .flatMap(({ data }) => Object.keys(data ?? {}));
    expect(filesWith(false)).not.toContain("support.json");
    expect(filesWith(true)).toEqual(expect.arrayContaining([...filesWith(false), "support.json"]));
  });

  it("no empty variable", () => {
    const set = {
      "ingest.config.BATCH_MAX_AGE_MS": "",
      "exportApi.config.PUBLIC_BASE_URL": "",
      "config.LOG_LEVEL": "",
    };
    const configMaps = manifestsWith("minimal", set).filter(({ kind }) => kind === "ConfigMap");
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
    const pods = manifestsWith("minimal", set)
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
    const given = manifestsWith("minimal", set);
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
