import { RECORD_KINDS } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";
import { helm, manifestsOf } from "./examples.ts";
import type { Manifest } from "./helm.ts";
import { renderedContainers } from "./rendered-env.ts";

const EVENTS = Object.values(RECORD_KINDS)
  .map(({ list }) => list.replaceAll("_", "-"))
  .toSorted();
const DEAD_LETTERS = EVENTS.map((topic) => `${topic}.dead-letter`);

const objectsOf = (example: string, kind: string): Record<string, Pick<Manifest, "metadata" | "spec">> =>
  Object.fromEntries(
    manifestsOf(example)
      .filter((manifest) => manifest.kind === kind)
      .map((manifest) => [manifest.metadata.name.replace("demo-conversation-export-", ""), manifest]),
  );

const loginsOf = (example: string) =>
  Object.fromEntries(
    renderedContainers(manifestsOf(example)).map(({ workload, plain, secret, files }) => {
      const { KAFKA_TLS, KAFKA_CA_FILE, KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, REDIS_USERNAME } = plain;
      const { KAFKA_SASL_PASSWORD, REDIS_PASSWORD } = secret;
      const ca = files[KAFKA_CA_FILE ?? ""]?.name;
      return [
        workload.replace("demo-conversation-export-", ""),
        [
          [KAFKA_TLS, ca, KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD],
          [REDIS_USERNAME, REDIS_PASSWORD],
        ],
      ];
    }),
  );

describe.skipIf(helm === null)("for Strimzi and KEDA the chart renders", () => {
  it("topics that outlive the release, those of dead letters with room for headers", () => {
    const topics = objectsOf("strimzi-keda", "KafkaTopic");
    expect(Object.keys(topics)).toEqual([...EVENTS, "sms-triggers", ...DEAD_LETTERS]);
    for (const [name, { metadata, spec }] of Object.entries(topics)) {
      expect(metadata).toMatchObject({
        namespace: "export",
        labels: { "strimzi.io/cluster": "events" },
        annotations: { "helm.sh/resource-policy": "keep" },
      });
      expect(spec).toEqual({
        topicName: name,
        partitions: 24,
        replicas: 3,
        config: {
          "cleanup.policy": "delete",
          "message.timestamp.type": "LogAppendTime",
          "retention.ms": 604_800_000,
          ...(name.endsWith(".dead-letter") ? { "max.message.bytes": 2_097_176 } : {}),
        },
      });
    }
  });

  it("a Kafka user for each component, with the operations that it needs", () => {
    const acl = (type: string, operations: string, names: readonly string[]) =>
      names.map((name) => ({
        resource: { type, name, patternType: "literal" },
        operations: operations.split(" "),
      }));
    const group = (operations: string) => acl("group", operations, ["conversation-export-ingest"]);
    const rules = {
      ingest: [
        ...acl("topic", "Read Describe", EVENTS),
        ...acl("topic", "Write Describe", DEAD_LETTERS),
        ...group("Read Describe"),
      ],
      "export-api": acl("topic", "Write Describe", ["sms-triggers"]),
      jobs: [
        ...acl("topic", "Read Write Describe DescribeConfigs", EVENTS),
        ...acl("topic", "Read Describe", DEAD_LETTERS),
        ...group("Describe"),
      ],
      ops: [
        ...acl("topic", "Read Describe DescribeConfigs", [...EVENTS, ...DEAD_LETTERS]),
        ...acl("topic", "Describe DescribeConfigs", ["sms-triggers"]),
        ...group("Read Describe"),
      ],
    };
    const users = objectsOf("strimzi-keda", "KafkaUser");
    expect(Object.keys(users)).toEqual(Object.keys(rules));
    for (const [name, acls] of Object.entries(rules)) {
      expect(users[name], name).toMatchObject({
        metadata: { namespace: "export", labels: { "strimzi.io/cluster": "events" } },
        spec: { authentication: { type: "scram-sha-512" }, authorization: { type: "simple", acls } },
      });
    }
  });

  it("pods that log in as these users, and no topics Job", () => {
    const kafka = (user: string) => [
      "on",
      "events-cluster-ca-cert",
      "scram-sha-512",
      `demo-conversation-export-${user}`,
      { name: `demo-conversation-export-${user}`, key: "password" },
    ];
    const redis = [undefined, { name: "redis", key: "redis-password" }];
    const none = [undefined, undefined, undefined, undefined, undefined];
    const noRedis = [undefined, undefined];
    expect(loginsOf("strimzi-keda")).toEqual({
      "Deployment ingest": [kafka("ingest"), noRedis],
      "Deployment export-api": [kafka("export-api"), redis],
      "Deployment jobs": [kafka("jobs"), redis],
      "CronJob ops": [kafka("ops"), redis],
      "Pod test-doctor": [kafka("ops"), redis],
      "Job migrate": [none, noRedis],
    });
  });

  it("ingest scaled by the lag of each topic, jobs by the age of what waits", () => {
    const { ingest, jobs } = objectsOf("strimzi-keda", "ScaledObject");
    const fallback = { failureThreshold: 5, replicas: 2, behavior: "currentReplicasIfHigher" };
    expect(ingest?.spec).toEqual({
      scaleTargetRef: { name: "demo-conversation-export-ingest" },
      minReplicaCount: 2,
      maxReplicaCount: 24,
      pollingInterval: 30,
      fallback,
      advanced: {
        horizontalPodAutoscalerConfig: {
          behavior: {
            scaleDown: {
              stabilizationWindowSeconds: 600,
              policies: [{ type: "Pods", value: 1, periodSeconds: 120 }],
            },
          },
        },
      },
      triggers: EVENTS.map((topic) => ({
        type: "kafka",
        metadata: {
          bootstrapServers: "events-kafka-bootstrap:9093",
          consumerGroup: "conversation-export-ingest",
          topic,
          lagThreshold: "100000",
          offsetResetPolicy: "earliest",
          excludePersistentLag: "true",
          tls: "enable",
          sasl: "scram_sha512",
        },
        authenticationRef: { name: "demo-conversation-export-kafka" },
      })),
    });
    expect(jobs?.spec).toEqual({
      scaleTargetRef: { name: "demo-conversation-export-jobs" },
      minReplicaCount: 2,
      maxReplicaCount: 4,
      pollingInterval: 30,
      fallback,
      triggers: [
        {
          type: "prometheus",
          metadata: {
            serverAddress: "http://prometheus-operated.monitoring:9090",
            query:
              'max(conversation_export_job_oldest_waiting_age_seconds{job="conversation-export-jobs",namespace="export"})',
            threshold: "60",
          },
        },
      ],
    });
    expect(objectsOf("strimzi-keda", "TriggerAuthentication")["kafka"]?.spec).toEqual({
      env: [
        { parameter: "username", name: "KAFKA_SASL_USERNAME", containerName: "ingest" },
        { parameter: "password", name: "KAFKA_SASL_PASSWORD", containerName: "ingest" },
      ],
      secretTargetRef: [{ parameter: "ca", name: "events-cluster-ca-cert", key: "ca.crt" }],
    });
  });

  it("a route without a time limit for pages", () => {
    expect(objectsOf("strimzi-keda", "HTTPRoute")["export-api"]?.spec).toEqual({
      parentRefs: [{ name: "public", namespace: "gateways" }],
      hostnames: ["export.example.com"],
      rules: [
        {
          backendRefs: [{ name: "demo-conversation-export-export-api", port: 80 }],
          timeouts: { request: "0s" },
        },
      ],
    });
  });
});

describe.skipIf(helm === null)("for services with public certificates the chart renders", () => {
  it("TLS without a bundle, one login for all", () => {
    const kafka = ["on", undefined, "plain", "KEY-ID", { name: "kafka-key", key: "secret" }];
    const redis = ["default", { name: "redis-cloud", key: "password" }];
    const logins = loginsOf("clickhouse-cloud");
    expect(Object.keys(logins)).toHaveLength(6);
    for (const [workload, login] of Object.entries(logins)) {
      if (workload === "Job migrate") continue;
      const expected = workload === "Deployment ingest" ? [undefined, undefined] : redis;
      expect(login, workload).toEqual([kafka, expected]);
    }
  });

  it("the ClickHouse user of each component", () => {
    const users = renderedContainers(manifestsOf("clickhouse-cloud")).map(({ workload, plain, secret }) => [
      workload.replace("demo-conversation-export-", ""),
      [plain["CLICKHOUSE_USER"], secret["CLICKHOUSE_PASSWORD"]],
    ]);
    const key = (name: string) => ({ name: "clickhouse-cloud", key: name });
    expect(Object.fromEntries(users)).toMatchObject({
      "Deployment ingest": ["export_writer", key("writer")],
      "Deployment export-api": ["export_reader", key("reader")],
      "Deployment jobs": ["export_jobs", key("jobs")],
      "CronJob ops": ["default", key("default")],
      "Job migrate": ["default", key("default")],
    });
  });

  it("network policies with the ports of the addresses", () => {
    const { jobs } = objectsOf("clickhouse-cloud", "NetworkPolicy");
    const ports = JSON.stringify((jobs?.spec as { egress?: unknown } | undefined)?.egress);
    for (const port of [9092, 8443, 6380]) expect(ports).toContain(`"port":${port}`);
  });
});
