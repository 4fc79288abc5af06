import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** An image as the chart names it. */
export type Image = { readonly registry: string; readonly repository: string; readonly tag: string };

export const referenceOf = ({ registry, repository, tag }: Image): string =>
  `${registry}/${repository}:${tag}`;

export type Settings = {
  readonly image: Image;
  /** How the image gets into the nodes: a shell command that finds the archive in $FILE; null: they pull it. */
  readonly load: { readonly command: string; readonly file: string } | null;
  /** Address of this machine at which pods reach it; null: that of the way to the first node. */
  readonly host: string | null;
  /** What is tried between installation and end. */
  readonly groups: readonly GroupName[];
};

/** Groups of steps, in their order. */
const USUAL_GROUPS = ["network", "upgrades", "deaths", "hangs", "moves", "outage"] as const;
/** They take more than an hour, so they have to be named. */
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
/** Those about alerts come first: bad minutes and restarts of earlier steps would count towards alerts. */
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

/** @throws Error when the reference has no registry or no tag */
export const parseImage = (reference: string): Image => {
  const [, registry, repository, tag] = /^(.+)\/([^/:@]+):([^/:@]+)$/.exec(reference) ?? [];
  if (registry === undefined || repository === undefined || tag === undefined)
    throw new Error(`IMAGE=${reference} is not of the form registry/name:tag`);
  return { registry, repository, tag };
};

/** @throws Error that says what to set, or that the archive is missing */
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
