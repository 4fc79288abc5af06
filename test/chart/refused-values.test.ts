import { describe, expect, it } from "vitest";
import { helm } from "./examples.ts";
import { OTHER_APIS, renderChart } from "./helm.ts";

const NONE = { name: "" };

/** By the example whose values they are set in. */
const REFUSED: Readonly<
  Record<string, readonly (readonly [values: Readonly<Record<string, unknown>>, message: string])[]>
> = {
  minimal: [
    [{ "clickhouse.url": "" }, "clickhouse.url is empty: set it to"],
    [{ "clickhouse.url": "http://a:b@c:8123/d" }, "clickhouse.url holds a user: leave only the host in it"],
    [{ "kafka.brokers": [] }, "kafka.brokers is empty: list the brokers"],
    [{ "redis.url": "" }, "redis.url is empty: set it to"],
    [{ "redis.url": "redis://:secret@redis:6379" }, "redis.url holds a user or a password"],
    [
      { "cursorSecret.existingSecret": NONE },
      "cursorSecret has no Secret: set cursorSecret.existingSecret.name",
    ],
    [{ "clickhouse.users.jobs.existingSecret": NONE }, "clickhouse.users.jobs has no Secret"],
    [
      { "clickhouse.shardUrls": ["http://ch-1:8123"] },
      "clickhouse.shardUrls counts only with clickhouse.cluster",
    ],
    [
      { "redis.username": "export", "redis.existingSecret": NONE },
      "redis has no Secret: set redis.existingSecret.name",
    ],
    [
      { "redis.existingSecret": NONE },
      "everybody who reaches it can start jobs: set redis.existingSecret.name",
    ],
    [{ "redis.users.jobs.username": "jobs", "redis.existingSecret": NONE }, "redis.users.jobs has no Secret"],
    [{ "redis.users.jobs.existingSecret.name": "a" }, "redis.users.jobs has a password, but no username"],
    [
      { "clickhouse.users.analyst.existingSecret.name": "a" },
      "clickhouse.users.analyst has a password, but no username",
    ],
    [{ "clickhouse.users.analyst.username": "a" }, "clickhouse.users.analyst has no Secret"],
    [
      { "jobs.extraEnv": [{ name: "BOARD_PORT", value: "9090" }] },
      "jobs.extraEnv sets BOARD_PORT: leave it out",
    ],
    [
      { "networkPolicy.boardFrom": [{ podSelector: {} }] },
      "networkPolicy.boardFrom counts only with a board",
    ],
    [
      { "kafka.brokers": ["10.0.8.1:9092", "kafka.example.com:9092"] },
      "networkPolicy.kafkaTo is empty, and kafka.brokers names kafka.example.com:9092, which a NetworkPolicy",
    ],
    [
      { "clickhouse.url": "https://ch.example.com:8443/d" },
      "networkPolicy.clickhouseTo is empty, and clickhouse.url names ch.example.com:8443",
    ],
    [
      { "redis.url": "redis+sentinel://a.example.com,b.example.com/main" },
      "networkPolicy.redisTo is empty, and redis.url names a.example.com, b.example.com",
    ],
    [
      { "traces.endpoint": "https://traces.example.com" },
      "networkPolicy.tracesTo is empty, and traces.endpoint names traces.example.com",
    ],
    [
      { "jobs.backfillLocations": ["s3://archive/events"] },
      "networkPolicy.s3To is empty, and jobs.backfillLocations names s3.amazonaws.com",
    ],
    [{ "kafka.sasl": { mechanism: "plain", username: "export" } }, "kafka.sasl has no Secret"],
    [{ "kafka.sasl.username": "export" }, "kafka.sasl.mechanism is empty"],
    [{ "kafka.sasl.users.jobs.username": "export" }, "kafka.sasl.mechanism is empty"],
    [
      { "kafka.sasl": { mechanism: "oauthbearer", username: "a" } },
      "kafka.sasl.mechanism is oauthbearer, which has no users and passwords",
    ],
    [{ "kafka.sasl.mechanism": "oauthbearer" }, "kafka.sasl.oauth has no Secret"],
    [{ "kafka.sasl.mechanism": "oauthbearer" }, "kafka.sasl.oauth.tokenUrl or clientId is empty"],
    [
      { "kafka.sasl": { mechanism: "oauthbearer", oauth: { tokenUrl: "http://idp/token" } } },
      "kafka.sasl.oauth.tokenUrl begins with http: use https",
    ],
    [{ "kafka.sasl.oauth.clientId": "export" }, "counts only with kafka.sasl.mechanism=oauthbearer"],
    [
      { "kafka.sasl": { mechanism: "aws-msk-iam", awsRegion: "eu-central-1" } },
      "kafka.tls.enabled is false: aws-msk-iam requires TLS",
    ],
    [
      { "kafka.sasl": { mechanism: "aws-msk-iam", awsRegion: "eu-central-1" } },
      "networkPolicy.loginTo is empty, and kafka.sasl.awsRegion names sts.eu-central-1.amazonaws.com",
    ],
    [
      {
        "kafka.sasl": { mechanism: "aws-msk-iam", awsRegion: "eu-central-1" },
        "jobs.s3.accessKeyId.existingSecret": { name: "s3", key: "id" },
      },
      "jobs.s3.accessKeyId would also sign the tokens of aws-msk-iam",
    ],
    [{ "kafka.sasl.mechanism": "aws-msk-iam" }, "kafka.sasl.awsRegion is empty"],
    [{ "kafka.sasl.awsRegion": "eu-central-1" }, "only with kafka.sasl.mechanism=aws-msk-iam"],
    [
      {
        "kafka.sasl": {
          mechanism: "plain",
          users: { ingest: { username: "a", existingSecret: { name: "a" } } },
        },
      },
      "kafka.sasl.username is empty, and so is kafka.sasl.users.exportApi.username: name a user",
    ],
    [
      { "redis.password": "p", "redis.existingSecret": NONE },
      "redis.password is set in the values: put it into a Secret",
    ],
    [
      { "cursorSecret.value": "c".repeat(32) },
      "cursorSecret.value and cursorSecret.existingSecret.name are both set",
    ],
    [
      { "secret.create": true, cursorSecret: { value: "short", existingSecret: NONE } },
      "cursorSecret.value is too short",
    ],
    [{ "kafka.tls.ca.existingSecret": "ca" }, "kafka.tls.enabled is false: set it to true"],
    [{ "clickhouse.ca.existingSecret": "ca" }, "clickhouse.ca counts only with an https: address"],
    [{ "redis.ca.existingSecret": "ca" }, "redis.ca counts only with a rediss: address"],
    [{ "redis.sentinel.existingSecret": { name: "s" } }, "redis.sentinel counts only with redis+sentinel:"],
    [{ "traces.headers.existingSecret.name": "h" }, "traces.headers counts only with traces.endpoint: set"],
    [
      { traces: { endpoint: "http://collector:4318", ca: { existingSecret: "ca" } } },
      "traces.ca counts only with an https: address",
    ],
    [{ "traces.sampleRatio": 2 }, "sampleRatio"],
    [{ "ingest.replicas": 7 }, "lower ingest.replicas, or add partitions"],
    [{ "exportApi.shutdownSeconds": 75 }, "exportApi.shutdownSeconds is too short to finish pages"],
    [{ "image.tag": "latest" }, "image.tag is latest"],
    [{ "kafka.topics.messages": "conversations" }, "kafka.topics names a topic twice"],
    [{ unknown: 1 }, "unknown"],
    [{ "clickhouse.users.writer.passwort": "p" }, "passwort"],
    [{ "ingest.config.BATCH_MAX_RECORD": 1 }, "BATCH_MAX_RECORD"],
    [{ "ingest.keda.minReplicas": 0 }, "minReplicas"],
  ],
  production: [
    [
      { "networkPolicy.metricsFrom": [] },
      "Prometheus reads no metrics, which serviceMonitor.enabled rests on: name its pods",
    ],
    [
      { "networkPolicy.metricsFrom": [], "serviceMonitor.enabled": false },
      "which prometheusRule.enabled rests on: name its pods",
    ],
    [{ "redis.ca.existingSecret": "ca" }, "redis.ca names a Secret and a ConfigMap"],
    [{ "exportApi.replicas": 3 }, "exportApi.replicas and exportApi.autoscaling.enabled are both set"],
    [{ "exportApi.trustedProxies": [] }, "exportApi.trustedProxies is empty behind an ingress"],
    [{ "exportApi.config.PUBLIC_BASE_URL": "" }, "exportApi.config.PUBLIC_BASE_URL is empty"],
    [{ "ingress.hosts": [] }, "ingress.hosts is empty"],
    [{ "prometheusRule.runbookBaseUrl": "" }, "prometheusRule.runbookBaseUrl is empty"],
    [
      { "externalSecret.secretStoreRef": { kind: "SecretStore", name: "" } },
      "externalSecret.secretStoreRef.name is empty",
    ],
    [{ "externalSecret.data.no-such-key": { key: "a" } }, "externalSecret.data.no-such-key is no credential"],
  ],
  "strimzi-keda": [
    [
      { "kafka.sasl.mechanism": "oauthbearer" },
      "ingest.keda is not made for kafka.sasl.mechanism=oauthbearer",
    ],
    [
      { "kafka.sasl.users.ops": { username: "a", existingSecret: { name: "a" } } },
      "leave users and Secrets out of kafka.sasl",
    ],
    [
      { "strimzi.topics.enabled": false, "kafka.createTopics.enabled": true },
      "set strimzi.topics.enabled in its place",
    ],
    [{ "ingest.replicas": 3 }, "ingest.replicas and ingest.keda.enabled are both set"],
    [{ "jobs.replicas": 3 }, "jobs.replicas and jobs.keda.enabled are both set"],
    [{ "jobs.keda.minReplicas": 9 }, "jobs.keda.minReplicas is larger than maxReplicas"],
    [{ "ingest.keda.maxReplicas": 25 }, "ingest may have 25 replicas, but each topic has 24 partitions"],
    [{ "jobs.keda.prometheusAddress": "" }, "jobs.keda.prometheusAddress is empty"],
    [{ "serviceMonitor.enabled": false }, "jobs.keda rests on the metrics of jobs"],
    [{ "exportApi.trustedProxies": [] }, "exportApi.trustedProxies is empty behind an ingress"],
    [{ "exportApi.config.PUBLIC_BASE_URL": "" }, "exportApi.config.PUBLIC_BASE_URL is empty"],
    [{ "httpRoute.parentRefs": [] }, "httpRoute.parentRefs is empty"],
    [{ "strimzi.cluster": "" }, "strimzi.cluster is empty"],
    [{ "kafka.sasl.mechanism": "scram-sha-256" }, "strimzi.users are made for scram-sha-512"],
    [{ "kafka.createTopics.enabled": true }, "both make the topics"],
  ],
  "clickhouse-cloud": [
    [
      { "kafka.sasl.users.ingest.existingSecret.name": "a" },
      "kafka.sasl.users.ingest has a password, but no username",
    ],
  ],
};

describe.skipIf(helm === null)("values that cannot work", () => {
  it.each(
    Object.entries(REFUSED).flatMap(([example, rows]) => rows.map((row) => [example, ...row] as const)),
  )("%s with %j are refused with what to do", (example, set, message) => {
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
