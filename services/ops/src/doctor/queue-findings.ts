import { JOB_NAMES, type JobClient, type JobView } from "@conversation-export/queue";
import type { RedisServer } from "@conversation-export/runtime";
import type { WarehouseConfig } from "../config.ts";
import { withJobClient } from "../connect/connections.ts";
import { redisPlace } from "../explain/explain.ts";
import { wasAskedWrongly } from "../jobs/job-failure.ts";
import { applying, attempt, type Finding, type Findings, findingsOf } from "./finding.ts";
import { redisOtherFindings } from "./redis-other-findings.ts";

const AREA = "Redis";
const { ok, warning, problem, skipped } = findingsOf(AREA);

/** A later schedule means that no process runs it. */
const LATE_MS = 60_000;
const MOST_FAILED = 200;

const serverFindings = async (jobs: JobClient, host: string): Promise<Findings> => {
  const { version, maxmemoryPolicy, problems } = await jobs.checkServer();
  const found = `${version ?? "unknown version"} at ${host}, ${maxmemoryPolicy ?? "policy hidden"}`;
  if (problems.length === 0) return [ok("server", found)];
  return problems.map((text) => {
    const at = text.indexOf(": ");
    return problem("server", text.slice(0, at), text.slice(at + 2));
  });
};

const scheduleFinding = async (jobs: JobClient): Promise<Finding> => {
  const held = await jobs.heldSchedules();
  if (held.length > 0) {
    return problem(
      "schedules",
      `held since their job failed for good: ${held.map(({ name, reason }) => `${name} (${reason})`).join(", ")}`,
      `when the cause is gone, ${held.map(({ job }) => `\`export-ops jobs retry ${job}\``).join(", ")}`,
    );
  }
  const schedules = await jobs.schedules();
  if (schedules.length === 0) {
    return warning("schedules", "there are none", "start the jobs service, which creates them");
  }
  const late = schedules.filter(
    ({ nextRunAt }) => nextRunAt !== null && nextRunAt.getTime() < Date.now() - LATE_MS,
  );
  if (late.length === 0) return ok("schedules", schedules.map(({ name }) => name).join(", "));
  const advice = "start the jobs service, or give it more replicas when it is busy";
  return problem("schedules", `late: ${late.map(({ name }) => name).join(", ")}`, advice);
};

/** null: Redis lists no clients; without `hasRun` the installation may be new. */
export const processFinding = (counts: readonly (number | null)[], hasRun: boolean): Finding => {
  const name = "jobs processes";
  const known = counts.filter((count) => count !== null);
  if (known.length === 0) {
    return skipped(name, "Redis does not list its clients", "check that the jobs service runs");
  }
  const most = Math.max(...known);
  if (most > 0) return ok(name, `${most} connected`);
  const none = hasRun ? problem : warning;
  return none(name, "none is connected", "start the jobs service: without it no job runs");
};

export const failedFinding = (failed: readonly Pick<JobView, "name" | "reason">[]): Finding => {
  const name = "failed jobs";
  if (failed.length === 0) return ok(name, "none");
  const wrong = failed.filter(wasAskedWrongly).length;
  const who = wrong === failed.length ? "they" : `${wrong} of them`;
  const advice = applying([
    "`export-ops jobs list --state failed` shows why",
    wrong < failed.length && "when the cause is gone, `export-ops jobs retry ID` continues one",
    wrong > 0 && `${who} would fail again: \`export-ops jobs remove ID --yes\` removes one`,
  ]);
  const counts = [...Map.groupBy(failed, (job) => job.name)].map(([queue, own]) => `${own.length} ${queue}`);
  const most = failed.length === MOST_FAILED ? ", maybe more" : "";
  return warning(name, `${counts.join(", ")}${most}`, advice.join("; "));
};

/** Of a server that takes no writes reports only that: its schedules run late anyway. */
export const queueFindings = (server: RedisServer, warehouse: WarehouseConfig | null): Promise<Findings> =>
  attempt(AREA, "server", () =>
    withJobClient(server, async (jobs) => [
      ...(await serverFindings(jobs, redisPlace(server))),
      ...(await attempt(AREA, "jobs processes", async () =>
        processFinding(
          await Promise.all(JOB_NAMES.map((name) => jobs.workers(name))),
          (await jobs.schedules()).length > 0,
        ),
      )),
      ...(warehouse === null ? [] : await redisOtherFindings(server, warehouse)),
      ...(await attempt(AREA, "schedules", () => scheduleFinding(jobs))),
      ...(await attempt(AREA, "failed jobs", async () =>
        failedFinding(await jobs.list({ states: ["failed"], limit: MOST_FAILED })),
      )),
    ]),
  );
