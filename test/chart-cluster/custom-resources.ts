import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Cluster } from "./cluster.ts";

type Kind = {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
};
/** A Go module that contains the definitions, and their files in it. */
type Source = { readonly module: string; readonly files: readonly string[]; readonly kinds: readonly Kind[] };

const kind = (group: string, version: string, name: string): Kind => ({
  group,
  version,
  kind: name,
  plural: `${name.toLowerCase()}s`,
});

const SOURCES: readonly Source[] = [
  {
    module: "github.com/kedacore/keda/v2@v2.21.0",
    files: [
      "config/crd/bases/keda.sh_scaledobjects.yaml",
      "config/crd/bases/keda.sh_triggerauthentications.yaml",
    ],
    kinds: [
      kind("keda.sh", "v1alpha1", "ScaledObject"),
      kind("keda.sh", "v1alpha1", "TriggerAuthentication"),
    ],
  },
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    files: ["servicemonitors", "prometheusrules"].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
    kinds: [
      kind("monitoring.coreos.com", "v1", "ServiceMonitor"),
      kind("monitoring.coreos.com", "v1", "PrometheusRule"),
    ],
  },
  {
    module: "github.com/external-secrets/external-secrets@v1.3.2",
    files: ["config/crds/bases/external-secrets.io_externalsecrets.yaml"],
    kinds: [kind("external-secrets.io", "v1", "ExternalSecret")],
  },
  {
    module: "sigs.k8s.io/gateway-api@v1.5.1",
    files: ["config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
    kinds: [kind("gateway.networking.k8s.io", "v1", "HTTPRoute")],
  },
];

/** Strimzi is written in Java, so the Go module proxy does not have its definitions. */
const UNCHECKED: readonly Kind[] = [
  kind("kafka.strimzi.io", "v1", "KafkaTopic"),
  kind("kafka.strimzi.io", "v1", "KafkaUser"),
];

const nameOf = ({ group, plural }: Kind): string => `${plural}.${group}`;

/** A definition that accepts any object. */
const permissive = (one: Kind): unknown => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: nameOf(one) },
  spec: {
    group: one.group,
    scope: "Namespaced",
    names: {
      kind: one.kind,
      plural: one.plural,
      singular: one.kind.toLowerCase(),
      listKind: `${one.kind}List`,
    },
    versions: [
      {
        name: one.version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
});

const filesOf = async ({ module, files }: Source): Promise<string[] | null> => {
  try {
    const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], {
      cwd: tmpdir(),
      env: { ...process.env, GOFLAGS: "-mod=mod" },
    });
    const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
    return files.map((file) => readFileSync(join(folder, file), "utf8"));
  } catch {
    return null;
  }
};

/**
 * Creates the definitions that the examples need and the cluster lacks: those of their projects or, without
 * Go or its network, definitions that accept any object. Returns a function that deletes them.
 */
export const installCustomResources = async (
  cluster: Cluster,
  print: (line: string) => void,
): Promise<() => Promise<void>> => {
  const known = (await cluster.kubectl(["get", "customresourcedefinitions", "--output=name"])).split("\n");
  const isMissing = (one: Kind): boolean => !known.some((line) => line.endsWith(`/${nameOf(one)}`));
  const made: string[] = [];
  const apply = async (text: string, kinds: readonly Kind[], what: string): Promise<void> => {
    // Some are too large for the annotation of a client-side apply.
    await cluster.kubectl(["apply", "--server-side", "--filename=-"], text);
    made.push(...kinds.map(nameOf));
    print(`definitions: ${kinds.map((one) => one.kind).join(", ")} ${what}`);
  };
  const open = async (kinds: readonly Kind[]): Promise<void> => {
    const items = kinds.map(permissive);
    const what = "that take anything: their fields are NOT checked";
    await apply(JSON.stringify({ apiVersion: "v1", kind: "List", items }), kinds, what);
  };
  for (const source of SOURCES) {
    const kinds = source.kinds.filter(isMissing);
    if (kinds.length === 0) continue;
    const files = await filesOf(source);
    if (files === null) await open(kinds);
    else await apply(files.join("\n---\n"), kinds, `of ${source.module}`);
  }
  const unchecked = UNCHECKED.filter(isMissing);
  if (unchecked.length > 0) await open(unchecked);
  if (made.length > 0) {
    const resources = made.map((name) => `customresourcedefinition/${name}`);
    await cluster.kubectl(["wait", "--for=condition=Established", "--timeout=60s", ...resources]);
  }
  return async () => {
    if (made.length > 0) await cluster.kubectl(["delete", "customresourcedefinition", ...made]);
  };
};
