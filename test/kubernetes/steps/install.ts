import type { Cluster } from "../cluster.ts";
import type { Release } from "../release.ts";
import type { Servers } from "../servers.ts";
import { ROOT, type Settings } from "../settings.ts";
import { runScript } from "../shell.ts";
import type { Steps } from "../step.ts";

export const CREDENTIALS = "conversation-export-credentials";

const loadImage = async ({ load }: Settings): Promise<string> => {
  if (load === null) return "pulled by the nodes";
  await runScript(load.command, { cwd: ROOT, env: { FILE: load.file } });
  return "";
};

const passwordsOf = ({ stack }: Servers): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(stack.clickhouse.passwords).map(([user, password]) => [user.toUpperCase(), password]),
  ),
  REDIS: "any",
});

const makeKey = async (release: Release, client: string): Promise<string> => {
  await release.ops("clients", "create", client);
  const said = await release.ops("keys", "create", "--client", client, "--scopes", "export", "--json");
  const { key } = JSON.parse(said.slice(said.indexOf("{"), said.lastIndexOf("}") + 1)) as { key: string };
  return key;
};

export const install = async (deps: {
  readonly cluster: Cluster;
  readonly release: Release;
  readonly servers: Servers;
  readonly steps: Steps;
  readonly settings: Settings;
  readonly clients: readonly string[];
}): Promise<ReadonlyMap<string, string>> => {
  const { cluster, release, servers, settings, clients } = deps;
  const { step } = deps.steps;
  const inNamespace = ["--namespace", release.namespace];
  const keys = new Map<string, string>();
  await step("image", {}, () => loadImage(settings));
  await step("namespace and Secret", {}, async () => {
    await release.guide(0);
    await servers.serve(cluster, release.namespace);
    await release.guide(1, passwordsOf(servers));
    const wrong = JSON.stringify({ stringData: { wrong: "wrong" } });
    await cluster.kubectl(["patch", "secret", CREDENTIALS, ...inNamespace, "--patch", wrong]);
    return "";
  });
  await step("install", {}, async () => {
    await release.guide(2);
    await release.ready();
    return "";
  });
  await step("helm test", {}, async () => {
    await release.guide(4);
    return "";
  });
  await step("clients and keys", {}, async () => {
    for (const client of clients) keys.set(client, await makeKey(release, client));
    return clients.join(", ");
  });
  return keys;
};
