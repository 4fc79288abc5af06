import { type Manifest, type PodSpec, podOf } from "../chart/helm.ts";

/** A Secret or ConfigMap that a pod uses, with the used keys. */
export type Needed = {
  readonly kind: "Secret" | "ConfigMap";
  readonly name: string;
  readonly keys: ReadonlySet<string>;
};

type Reference = { readonly kind: Needed["kind"]; readonly name: string; readonly keys: readonly string[] };

const referencesOf = (pod: PodSpec): Reference[] => {
  const variables = pod.containers
    .flatMap(({ env = [] }) => env)
    .flatMap(({ valueFrom }): Reference[] => {
      const ref = valueFrom?.secretKeyRef;
      return ref === undefined ? [] : [{ kind: "Secret", name: ref.name, keys: [ref.key] }];
    });
  const maps = pod.containers
    .flatMap(({ envFrom = [] }) => envFrom)
    .map(({ configMapRef }): Reference => ({ kind: "ConfigMap", name: configMapRef.name, keys: [] }));
  const files = (pod.volumes ?? []).flatMap(({ secret, configMap }): Reference[] => {
    const keys = ((secret ?? configMap)?.items ?? []).map(({ key }) => key);
    if (secret !== undefined) return [{ kind: "Secret", name: secret.secretName, keys }];
    return configMap === undefined ? [] : [{ kind: "ConfigMap", name: configMap.name, keys }];
  });
  return [...variables, ...maps, ...files];
};

/** The Secrets and ConfigMaps that the pods of these objects use, each once. */
export const neededBy = (objects: readonly Manifest[]): Needed[] => {
  const all = objects.flatMap((one) => {
    const pod = podOf(one);
    return pod === undefined ? [] : referencesOf(pod);
  });
  return [...Map.groupBy(all, ({ kind, name }) => `${kind}/${name}`).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    return [{ kind: first.kind, name: first.name, keys: new Set(same.flatMap(({ keys }) => keys)) }];
  });
};

/** A stand-in for each one that is not in `objects`, as an operator would have created it. */
export const standIns = (needed: readonly Needed[], objects: readonly Manifest[]): unknown[] =>
  needed
    .filter(({ kind, name }) => !objects.some((one) => one.kind === kind && one.metadata.name === name))
    .map(({ kind, name, keys }) => ({
      apiVersion: "v1",
      kind,
      metadata: { name },
      [kind === "Secret" ? "stringData" : "data"]: Object.fromEntries(
        [...keys].map((key) => [key, "x".repeat(32)]),
      ),
    }));
