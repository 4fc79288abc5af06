import {
  createRedis,
  createWriterLeases,
  JOB_NAMES,
  type JobClient,
  type WriterList,
} from "@conversation-export/queue";
import { silentLog, startWithin, withJobClient } from "../connections.ts";
import { redisAway } from "../explain.ts";
import { attempt, type Finding, type Findings, findingsOf } from "./finding.ts";

const AREA = "Redis";
const { ok, warning, problem } = findingsOf(AREA);

/** A schedule that is later than that has nobody who runs it. */
const LATE_MS = 60_000;
const CONNECT_MS = 5_000;

const serverFindings = async (jobs: JobClient, host: string): Promise<Findings> => {
  const { version, maxmemoryPolicy, problems } = await jobs.checkServer();
  if (problems.length === 0) {
    return [
      ok("server", `${version ?? "unknown version"} at ${host}, ${maxmemoryPolicy ?? "policy hidden"}`),
    ];
  }
  return problems.map((text) => {
    const at = text.indexOf(": ");
    return problem("server", text.slice(0, at), text.slice(at + 2));
  });
};

const scheduleFinding = async (jobs: JobClient): Promise<Finding> => {
  const schedules = await jobs.schedules();
  if (schedules.length === 0) {
    return warning("schedules", "there are none", "start the jobs service, which writes them");
  }
  const late = schedules.filter(
    ({ nextRunAt }) => nextRunAt !== null && nextRunAt.getTime() < Date.now() - LATE_MS,
  );
  return late.length === 0
    ? ok("schedules", schedules.map(({ name }) => name).join(", "))
    : problem(
        "schedules",
        `late: ${late.map(({ name }) => name).join(", ")}`,
        "start the jobs service, or give it more replicas when it is busy",
      );
};

const failedFinding = async (jobs: JobClient): Promise<Finding> => {
  const counts = await jobs.counts();
  const failed = JOB_NAMES.filter((name) => counts[name].failed > 0);
  return failed.length === 0
    ? ok("failed jobs", "none")
    : warning(
        "failed jobs",
        failed.map((name) => `${counts[name].failed} ${name}`).join(", "),
        "`export-ops jobs list --state failed` shows why; retry them by `export-ops jobs retry ID`",
      );
};

const listWriters = async (redisUrl: string): Promise<WriterList> => {
  const redis = createRedis({ url: redisUrl, log: silentLog() });
  try {
    await startWithin(redis, CONNECT_MS, () => redisAway(redisUrl, null));
    return await createWriterLeases({ redis }).list();
  } finally {
    await redis.stop();
  }
};

/** Which processes may write: an erasure waits until each of them has confirmed it. */
export const writerFindings = ({ leases, generation }: WriterList): Findings => {
  const name = "writers";
  const services = [...Map.groupBy(leases, ({ service }) => service)].map(
    ([service, own]) => `${own.length} ${service}`,
  );
  const behind = leases.filter(({ confirmed }) => confirmed < generation);
  if (behind.length > 0) {
    return [
      warning(
        name,
        `have not confirmed the last erasure: ${behind.map(({ service, id }) => `${service} ${id}`).join(", ")}`,
        "look again in a minute; if they stay, restart them, for the erasure waits for them",
      ),
    ];
  }
  return leases.some(({ service }) => service === "ingest")
    ? [ok(name, services.join(", "))]
    : [warning(name, services.join(", ") || "none", "start ingest: nothing that arrives is stored now")];
};

/** The server of the queues, and how the queues are. */
export const queueFindings = (redisUrl: string): Promise<Findings> =>
  attempt(AREA, "server", () =>
    withJobClient(redisUrl, async (jobs) => [
      ...(await serverFindings(jobs, new URL(redisUrl).host)),
      ...(await attempt(AREA, "schedules", async () => [await scheduleFinding(jobs)])),
      ...(await attempt(AREA, "writers", async () => writerFindings(await listWriters(redisUrl)))),
      ...(await attempt(AREA, "failed jobs", async () => [await failedFinding(jobs)])),
    ]),
  );
