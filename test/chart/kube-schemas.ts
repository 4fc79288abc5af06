import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { preparePythonTools } from "../outside/python-tools.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export const KUBE_VERSIONS = ["1.30", "1.34", "1.37"] as const;

/** From a PyPI package, so that checks need no network; returns kubeconform's -schema-location by version. */
export const prepareKubeSchemas = async (): Promise<ReadonlyMap<string, string>> => {
  const bin = await preparePythonTools("chart");
  const packages = globSync("lib/python*/site-packages/kubernetes_validate/kubernetes-json-schema", {
    cwd: dirname(bin),
  });
  const source = join(dirname(bin), packages[0] ?? "");
  const locations = new Map<string, string>();
  for (const version of KUBE_VERSIONS) {
    const folder = readdirSync(source).find((name) => name === `v${version}.0-local-strict`);
    if (folder === undefined) throw new Error(`no schemas of Kubernetes ${version} below ${source}`);
    const target = join(ROOT, ".local/kube-schemas", folder);
    if (!existsSync(join(target, "done"))) {
      rmSync(target, { recursive: true, force: true });
      mkdirSync(target, { recursive: true });
      for (const name of globSync("*.json", { cwd: join(source, folder) })) {
        // kubeconform supports neither the dialect nor the folder that the files name.
        const text = readFileSync(join(source, folder, name), "utf8")
          .replaceAll(/"\$schema":\s*"[^"]*",?/g, "")
          .replaceAll(/"\/?[^"]*_definitions\.json/g, '"_definitions.json');
        writeFileSync(join(target, name), text);
      }
      writeFileSync(join(target, "done"), "");
    }
    locations.set(version, `${target}/{{ .ResourceKind }}{{ .KindSuffix }}.json`);
  }
  return locations;
};
