import { describe, expect, it } from "vitest";
import { helm, manifestsOf, manifestsWith } from "./examples.ts";
import { type Manifest, podOf } from "./helm.ts";

type Rule = {
  readonly ports: readonly { readonly port: number | string; readonly protocol: string }[];
  readonly from?: readonly unknown[];
  readonly to?: readonly unknown[];
};
type Policy = { readonly ingress: readonly Rule[]; readonly egress: readonly Rule[] };

const nameOf = ({ metadata }: Manifest): string => metadata.name.replace("demo-conversation-export-", "");

const policiesOf = (manifests: readonly Manifest[]): Record<string, Policy> =>
  Object.fromEntries(
    manifests
      .filter(({ kind }) => kind === "NetworkPolicy")
      .map((manifest) => [nameOf(manifest), manifest.spec as unknown as Policy]),
  );

const own = { podSelector: {} };
const block = (cidr: string) => ({ ipBlock: { cidr } });
/** Where a Service without pods may lead. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"].map(block);
const namespace = (name: string) => ({
  namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
});

describe.skipIf(helm === null)("network policies", () => {
  it("let each component go to what it needs, at the places that the addresses name", () => {
    const set = {
      "kafka.brokers": ["10.0.8.1:9092", "10.0.8.2:9094"],
      "clickhouse.url": "http://clickhouse.stores.svc:8123/export",
      "traces.endpoint": "http://[fd00::1]:4318",
      "jobs.s3.endpoint": "http://minio-0.minio.files.svc.cluster.local:9000",
      "jobs.backfillLocations": ["/data", "s3://archive/events"],
    };
    const kafka = [
      [block("10.0.8.1/32"), block("10.0.8.2/32")],
      [9092, 9094],
    ];
    const clickhouse = [[namespace("stores"), ...PRIVATE], [8123]];
    const redis = [[own, ...PRIVATE], [6379]];
    const traces = [[block("fd00::1/128")], [4318]];
    const s3 = [[namespace("files"), ...PRIVATE], [9000]];
    const egress = Object.entries(policiesOf(manifestsWith("minimal", set))).map(([component, policy]) => {
      const [dns, ...rules] = policy.egress;
      expect(dns?.ports.map(({ port }) => port)).toEqual([53, 53]);
      return [component, rules.map(({ to, ports }) => [to, ports.map(({ port }) => port)])];
    });
    const metrics = {
      podSelector: {
        matchLabels: {
          "app.kubernetes.io/name": "conversation-export",
          "app.kubernetes.io/instance": "demo",
        },
      },
    };
    expect(Object.fromEntries(egress)).toEqual({
      ingest: [kafka, clickhouse, traces],
      "export-api": [kafka, clickhouse, redis, traces],
      jobs: [kafka, clickhouse, redis, traces, s3],
      ops: [kafka, clickhouse, redis],
      migrate: [clickhouse],
      topics: [kafka, clickhouse],
      test: [[[metrics], [9090]]],
    });
  });

  it("take no user in an address for a part of the host", () => {
    const set = {
      "jobs.s3.endpoint": "http://user:p:w@10.0.9.1:9000",
      "jobs.backfillLocations": ["s3://archive/events"],
    };
    const { jobs } = policiesOf(manifestsWith("minimal", set));
    expect(jobs?.egress.at(-1)).toMatchObject({ to: [block("10.0.9.1/32")], ports: [{ port: 9000 }] });
  });

  it("take peers and ports of the values in place of those that the addresses name", () => {
    const set = {
      "networkPolicy.redisTo": [block("10.0.10.0/24")],
      "networkPolicy.redisPorts": [6380],
      "networkPolicy.dnsTo": [namespace("kube-system")],
    };
    const { jobs } = policiesOf(manifestsWith("minimal", set));
    expect(jobs?.egress.map(({ to }) => to)).toEqual([
      [namespace("kube-system")],
      [own, ...PRIVATE],
      [own, ...PRIVATE],
      [block("10.0.10.0/24")],
    ]);
    expect(jobs?.egress.at(-1)?.ports.map(({ port }) => port)).toEqual([6380]);
  });

  it("never let a pod go anywhere but for DNS, unless the values say so", () => {
    for (const example of ["minimal", "production", "strimzi-keda"]) {
      for (const [component, { egress }] of Object.entries(policiesOf(manifestsOf(example)))) {
        for (const { to = [], ports } of egress) {
          const isDns = ports.every(({ port }) => port === 53);
          expect(to.length > 0 || isDns, `${component} of ${example}`).toBe(true);
        }
      }
    }
  });

  it("leave the board to those who are named for it, and metrics to those who are named for them", () => {
    const board = { "jobs.board.existingSecret": { name: "board" } };
    const metricsFrom = [namespace("monitoring")];
    const boardFrom = [namespace("operators")];
    const portsOf = (manifests: readonly Manifest[], component: string) =>
      manifests
        .filter((manifest) => manifest.kind === "Deployment" && nameOf(manifest) === component)
        .flatMap((manifest) => podOf(manifest)?.containers ?? [])
        .flatMap(({ ports = [] }) => ports.map(({ name, containerPort }) => [name, containerPort]));
    const boardsIn = (manifests: readonly Manifest[]) =>
      manifests.filter(({ kind, metadata }) => kind === "Service" && metadata.name.endsWith("-board"));
    const peersOf = (manifests: readonly Manifest[], port: string) =>
      Object.entries(policiesOf(manifests)).flatMap(([component, { ingress }]) =>
        ingress
          .filter(({ ports }) => ports.some((one) => one.port === port))
          .map(({ from }) => [component, from]),
      );

    const without = manifestsOf("minimal");
    expect(portsOf(without, "jobs")).toEqual([["metrics", 9090]]);
    expect(boardsIn(without)).toEqual([]);
    expect(peersOf(without, "board")).toEqual([]);

    const closed = manifestsWith("minimal", { ...board, "networkPolicy.metricsFrom": metricsFrom });
    expect(portsOf(closed, "jobs")).toEqual([
      ["metrics", 9090],
      ["board", 9091],
    ]);
    expect(portsOf(closed, "ingest")).toEqual([["metrics", 9090]]);
    expect(boardsIn(closed)).toMatchObject([
      { spec: { ports: [{ name: "board", port: 9091, targetPort: "board" }] } },
    ]);
    expect(peersOf(closed, "board")).toEqual([]);
    expect(peersOf(closed, "metrics")).toHaveLength(3);
    for (const [, from] of peersOf(closed, "metrics")) expect(from).toContainEqual(metricsFrom[0]);

    const open = manifestsWith("minimal", { ...board, "networkPolicy.boardFrom": boardFrom });
    expect(peersOf(open, "board")).toEqual([["jobs", boardFrom]]);
    expect(JSON.stringify(peersOf(open, "metrics"))).not.toContain("operators");
  });
});
