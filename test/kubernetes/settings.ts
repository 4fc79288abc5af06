import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Image = { readonly registry: string; readonly repository: string; readonly tag: string };

export const referenceOf = ({ registry, repository, tag }: Image): string =>
  `${registry}/${repository}:${tag}`;

export type Settings = {
  readonly image: Image;
  /** The command finds the archive in $FILE; null: nodes pull the image. */
  readonly load: { readonly command: string; readonly file: string } | null;
  /** null: the address on the way to the first node. */
  readonly host: string | null;
  readonly groups: readonly GroupName[];
};

const USUAL_GROUPS = ["network", "upgrades", "deaths", "hangs", "moves", "outage"] as const;
/** They take more than an hour, so they must be named. */
const ALERT_GROUPS = [
  "clickhouse-alerts",
  "ingest-alerts",
  "kafka-alerts",
  "redis-alerts",
  "other-alerts",
] as const;
export type AlertGroup = (typeof ALERT_GROUPS)[number];
export const isAboutAlerts = (name: GroupName): name is AlertGroup =>
  (ALERT_GROUPS as readonly string[]).includes(name);
/** Alerts first: bad minutes and restarts of earlier steps would count towards them. */
const GROUP_NAMES = [...ALERT_GROUPS, ...USUAL_GROUPS] as const;
export type GroupName = (typeof GROUP_NAMES)[number];

const readGroups = (list: string): readonly GroupName[] => {
  const wanted = list.split(",").filter((name) => name !== "");
  const unknown = wanted.filter((name) => !(GROUP_NAMES as readonly string[]).includes(name));
  if (unknown.length > 0)
    throw new Error(`STEPS=${list}: ${unknown.join()} is none of ${GROUP_NAMES.join()}`);
  return wanted.length === 0 ? USUAL_GROUPS : GROUP_NAMES.filter((name) => wanted.includes(name));
};

const WAYS = `how does the image get into the nodes of the cluster? Say one of
  CLUSTER_LOAD='kind load image-archive "$FILE"'
  CLUSTER_LOAD='minikube image load "$FILE"'
  CLUSTER_LOAD='k3s ctr images import "$FILE"'
  IMAGE=registry.example.com/conversation-export:0.1.0     (from where the nodes pull it)`;

export const parseImage = (reference: string): Image => {
  const [, registry, repository, tag] = /^(.+)\/([^/:@]+):([^/:@]+)$/.exec(reference) ?? [];
  if (registry === undefined || repository === undefined || tag === undefined)
    throw new Error(`IMAGE=${reference} is not of the form registry/name:tag`);
  return { registry, repository, tag };
};

export const readSettings = (env: NodeJS.ProcessEnv): Settings => {
  const { name, version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    name: string;
    version: string;
  };
  const command = env["CLUSTER_LOAD"] ?? "";
  const reference = env["IMAGE"] ?? "";
  if (command === "" && reference === "") throw new Error(WAYS);
  const file = join(ROOT, ".local/image", `${name}-${version}.tar`);
  if (command !== "" && !existsSync(file)) throw new Error(`there is no ${file}: run make image first`);
  return {
    image: parseImage(reference === "" ? `docker.io/library/${name}:${version}` : reference),
    load: command === "" ? null : { command, file },
    host: env["CLUSTER_HOST"] || null,
    groups: readGroups(env["STEPS"] ?? ""),
  };
};
