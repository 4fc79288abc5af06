import type { Cluster } from "./cluster.ts";
import { until } from "../system/until.ts";
import { programPath, startProgramPod } from "./program-pod.ts";

const NAME = "client";
export const CLIENT_PORT = 9999;

export type Seen = {
  /** 429 and 503 only with `Retry-After`. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Rejected, cut or silent connections, and streams without their trailer. */
  readonly broken: number;
  /** Other statuses, or no `Retry-After`. */
  readonly wrong: number;
  /** Largest age of the watermark, ms; null: none known. */
  readonly oldest: number | null;
  readonly said: readonly string[];
};

type Line = {
  readonly at: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly broken: number;
  readonly wrong: number;
  readonly age: number | null;
  readonly said: readonly string[];
};

export type Client = {
  since(from: number): Promise<Seen>;
  stop(): Promise<void>;
};

const NOTHING: Line = { at: 0, statuses: {}, broken: 0, wrong: 0, age: null, said: [] };

export const seenIn = (lines: readonly Line[], from: number): Seen => {
  const before = lines.findLast(({ at }) => at <= from) ?? NOTHING;
  const during = lines.filter(({ at }) => at > from);
  const end = during.at(-1) ?? before;
  const ages = during.flatMap(({ age }) => (age === null ? [] : [age]));
  return {
    statuses: Object.fromEntries(
      Object.entries(end.statuses)
        .map(([status, count]): [string, number] => [status, count - (before.statuses[status] ?? 0)])
        .filter(([, count]) => count > 0),
    ),
    broken: end.broken - before.broken,
    wrong: end.wrong - before.wrong,
    oldest: ages.length === 0 ? null : Math.max(...ages),
    said: during.flatMap(({ said }) => said),
  };
};

const parseLines = (log: string): Line[] =>
  log.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));

/** `api` with its /api prefix. */
export const startClient = async (
  cluster: Cluster,
  deps: { readonly namespace: string; readonly image: string; readonly api: string; readonly key: string },
): Promise<Client> => {
  const { namespace, image, api, key } = deps;
  await startProgramPod(cluster, {
    namespace,
    name: NAME,
    image,
    programs: ["client"],
    args: [programPath("client")],
    env: { API: api, KEY: key, PORT: String(CLIENT_PORT) },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  });
  const logs = async (...args: readonly string[]): Promise<Line[]> =>
    parseLines(await cluster.kubectl(["logs", NAME, "--namespace", namespace, ...args]));
  return {
    since: async (from) => {
      const now = Date.now();
      const isReported = async (): Promise<boolean> => ((await logs("--tail=1")).at(-1)?.at ?? 0) > now;
      await until("the client says what it saw", 60_000, isReported, 500);
      return seenIn(await logs(`--since-time=${new Date(from - 3_000).toISOString()}`), from);
    },
    stop: async () => {
      await cluster.kubectl(["delete", "pod", NAME, "--namespace", namespace]);
    },
  };
};
