import { type Container, type Manifest, type PodSpec, podOf } from "./helm.ts";

type KeyRef = { readonly name: string; readonly key: string };
type Probe = { readonly path: string; readonly port: number };

export type RenderedContainer = {
  readonly workload: string;
  /** `ops` for everything that runs export-ops. */
  readonly service: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly plain: Readonly<Record<string, string>>;
  readonly secret: Readonly<Record<string, KeyRef>>;
  readonly files: Readonly<Record<string, KeyRef & { readonly kind: "Secret" | "ConfigMap" }>>;
  /** null: not a service. */
  readonly probes: {
    readonly startup: Probe;
    readonly liveness: Probe;
    readonly readiness: Probe;
  } | null;
  /** Seconds between SIGTERM and SIGKILL. */
  readonly graceSeconds: number;
};

export const renderedContainers = (manifests: readonly Manifest[]): RenderedContainer[] => {
  const configMaps = new Map(
    manifests
      .filter(({ kind }) => kind === "ConfigMap")
      .map(({ metadata, data }) => [metadata.name, data ?? {}]),
  );
  return manifests.flatMap((manifest) => {
    const pod = podOf(manifest);
    return (pod?.containers ?? []).flatMap((container) => {
      const program = container.args.find((arg) => arg.startsWith("services/"));
      if (pod === undefined || program === undefined) return [];
      const given = container.env ?? [];
      const plain = (container.envFrom ?? []).map(({ configMapRef: { name } }) => {
        const data = configMaps.get(name);
        if (data === undefined)
          throw new Error(`${manifest.metadata.name} names the missing ConfigMap ${name}`);
        return data;
      });
      const values = given.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]));
      return [
        {
          workload: `${manifest.kind} ${manifest.metadata.name}`,
          service: program.split("/")[1] ?? "",
          command: container.command,
          args: container.args,
          plain: Object.assign({}, ...plain, Object.fromEntries(values)) as Record<string, string>,
          secret: Object.fromEntries(
            given.flatMap(({ name, valueFrom }) =>
              valueFrom?.secretKeyRef === undefined ? [] : [[name, valueFrom.secretKeyRef]],
            ),
          ),
          files: filesOf(pod, container),
          probes: probesOf(container),
          graceSeconds: pod.terminationGracePeriodSeconds ?? 30,
        },
      ];
    });
  });
};

const filesOf = (pod: PodSpec, container: Container): RenderedContainer["files"] =>
  Object.fromEntries(
    (container.volumeMounts ?? []).flatMap(({ name: volume, mountPath }) => {
      const { secret, configMap } = pod.volumes?.find(({ name }) => name === volume) ?? {};
      const [kind, name] =
        secret === undefined
          ? (["ConfigMap", configMap?.name] as const)
          : (["Secret", secret.secretName] as const);
      const items = (secret ?? configMap)?.items ?? [];
      if (name === undefined) return [];
      return items.map(({ key, path }) => [`${mountPath}/${path}`, { kind, name, key }] as const);
    }),
  );

const probesOf = (container: Container): RenderedContainer["probes"] => {
  const { startupProbe, livenessProbe, readinessProbe, ports = [] } = container;
  if (startupProbe === undefined || livenessProbe === undefined || readinessProbe === undefined) return null;
  const of = ({ httpGet: { path, port } }: typeof startupProbe): Probe => {
    const found = ports.find(({ name }) => name === port)?.containerPort;
    if (found === undefined) throw new Error(`${container.name} has no port ${port}`);
    return { path, port: found };
  };
  return { startup: of(startupProbe), liveness: of(livenessProbe), readiness: of(readinessProbe) };
};
