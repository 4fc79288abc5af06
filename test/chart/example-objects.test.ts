import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { documentedVariables } from "./documented-variables.ts";
import { EXAMPLES, helm, manifestsOf } from "./examples.ts";
import { type Manifest, podOf } from "./helm.ts";
import { type RenderedContainer, renderedContainers } from "./rendered-env.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Variables of the AWS SDK, which docs/configuration.md does not list. */
const AWS_VARIABLES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

describe.skipIf(helm === null)("every example renders", () => {
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
      const known = [...documentedVariables(container.service), ...AWS_VARIABLES];
      const names = [...Object.keys(container.plain), ...Object.keys(container.secret)];
      expect(
        names.filter((name) => !known.includes(name)),
        container.workload,
      ).toEqual([]);
      for (const reader of await readersOf(container))
        expect(
          () => reader({ OPERATOR: "jane", ...environmentOf(container) }),
          container.workload,
        ).not.toThrow();
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

  it.each(EXAMPLES)("%s with processes that are gone 80 seconds after they hang", (example) => {
    const deployments = manifestsOf(example).filter(({ kind }) => kind === "Deployment");
    expect(deployments).toHaveLength(3);
    for (const one of deployments) {
      const probe = podOf(one)?.containers[0]?.livenessProbe;
      if (probe === undefined) throw new Error(`${one.metadata.name} has no liveness probe`);
      const { periodSeconds, timeoutSeconds, failureThreshold, terminationGracePeriodSeconds = NaN } = probe;
      expect(periodSeconds * failureThreshold + timeoutSeconds + terminationGracePeriodSeconds).toBeLessThan(
        80,
      );
    }
  });

  it.each(
    EXAMPLES,
  )("%s with Jobs of hooks whose pod ends before the deadline at which it is deleted", (example) => {
    const jobs = manifestsOf(example).filter(({ kind }) => kind === "Job");
    expect(jobs.length).toBeGreaterThan(0);
    for (const job of jobs) {
      expect(job.spec?.activeDeadlineSeconds).toBe(900);
      expect(podOf(job)?.activeDeadlineSeconds).toBe(810);
    }
  });

  it("minimal with requests for a node of two processors and 4 GiB that others use too", () => {
    const asked = manifestsOf("minimal")
      .filter(({ kind }) => kind === "Deployment")
      .flatMap((one) => {
        const { cpu, memory } = podOf(one)?.containers[0]?.resources.requests ?? { cpu: "", memory: "" };
        return Array.from({ length: one.spec?.replicas ?? 0 }, () => ({
          cpu: Number(/^(\d+)m$/.exec(cpu)?.[1]),
          memory: Number(/^(\d+)Mi$/.exec(memory)?.[1]),
        }));
      });
    expect(asked).toHaveLength(6);
    expect(asked.reduce((sum, { cpu }) => sum + cpu, 0)).toBeLessThanOrEqual(500);
    expect(asked.reduce((sum, { memory }) => sum + memory, 0)).toBeLessThanOrEqual(2560);
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
});

type Reader = (env: Readonly<Record<string, string>>) => unknown;

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
  if (args.includes("migrate")) return [of("readWarehouseConfig"), of("readOperator")];
  if (args.includes("topics")) return [of("readBusConfig"), of("readWarehouseConfig"), of("readOperator")];
  return Object.values(module).filter((one) => typeof one === "function");
};

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
