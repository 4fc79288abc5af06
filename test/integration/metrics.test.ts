import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { type Family, readExposition, seriesNames } from "../documents/exposition.ts";
import { readMetricsPage, SERVICES, type Service } from "../documents/metrics-page.ts";
import { readQuery } from "../documents/promql.ts";
import { dashboardQueries, readRules, ruleQueries } from "../documents/watch-files.ts";

const ON_EVERY_SERIES = ["service"];
const JOB = "conversation-export-";

const ELSEWHERE: ReadonlySet<string> = new Set(["up", "kube_job_failed"]);

let system: System;
const shown = new Map<Service, Map<string, Family>>();

beforeAll(async () => {
  system = await startSystem("test-metrics");
  const processes: Record<Service, ServiceProcess> = {
    ingest: await system.service("ingest", { WATERMARK_INTERVAL_MS: "200", BATCH_MAX_AGE_MS: "50" }),
    "export-api": await system.service("export-api"),
    jobs: await system.service("jobs"),
  };
  const time = new Date().toISOString();
  const event = (kind: keyof typeof TOPICS, id: string, data: Record<string, unknown> | string) =>
    handMade({ kind, client: "acme", id, time, data });
  const send = ({ kind, key, value }: ReturnType<typeof event>) =>
    system.producer.send(TOPICS[kind], [{ key, value, partition: 0 }]);
  const dates = { date_created: time, created_at: time };
  await send(event("conversation", "c", { _id: "c", unheard_of: 1, ...dates }));
  await send(event("message", "m", { _id: "m", conversation_id: "c", ...dates }));
  await send(event("message", "bad", "[]"));
  await send(event("end_user", "e", { end_user_id: "e", ...dates }));
  const key = await system.key("acme");
  const path = "/v2/export/conversations?created_since=2026-01-01T00:00:00Z";
  const ask = async (authorization: string, to = path): Promise<number> => {
    const answer = await fetch(system.apiUrl + to, { headers: { authorization } });
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(await ask(`Bearer ${key}`)).toBe(200);
  expect(await ask("Bearer wrong")).toBe(401);
  expect(await ask(`Bearer ${key}`, "/v2/export/conversations?per_page=x")).toBe(400);
  const reads = async (service: Service, metric: string, labels: Record<string, string>, least: number) =>
    ((await readMetric(processes[service].metricsUrl, metric, labels)) ?? -1) >= least;
  await until("what was sent shows", 60_000, async () =>
    [
      await reads("ingest", "conversation_export_ingest_rows_written_total", { table: "end_users" }, 1),
      await reads("ingest", "conversation_export_ingest_rows_written_total", { table: "conversations" }, 1),
      await reads("ingest", "conversation_export_ingest_records_rejected_total", { topic: "messages" }, 1),
      ...(await Promise.all(
        Object.values(TOPICS).flatMap((topic) => [
          reads("ingest", "conversation_export_ingest_watermark_age_seconds", { topic }, 0),
          reads("ingest", "conversation_export_ingest_lag_unknown", { topic }, 0),
        ]),
      )),
      await reads("export-api", "conversation_export_api_requests_total", { status: "401" }, 1),
      await reads(
        "jobs",
        "conversation_export_job_attempt_seconds_count",
        { queue: "windows", outcome: "completed" },
        1,
      ),
      await reads("jobs", "conversation_export_reconciled_messages_total", { fate: "missing" }, 0),
      await reads("jobs", "conversation_export_job_next_run_timestamp_seconds", { queue: "windows" }, 1),
      await reads("jobs", "conversation_export_erasure_open_requests", {}, 0),
      await reads("jobs", "conversation_export_warehouse_parts", { table: "conversations" }, 1),
    ].every(Boolean),
  );
  for (const service of SERVICES) {
    const text = await (await fetch(`${processes[service].metricsUrl}/metrics`)).text();
    shown.set(service, readExposition(text, ON_EVERY_SERIES));
  }
});

afterAll(() => system?.stop());

const familiesOf = (service: Service): Family[] => [...(shown.get(service)?.values() ?? [])];

describe("docs/metrics.md", () => {
  const rows = readMetricsPage();

  it.each(SERVICES)("names exactly the metrics of %s, with their types", (service) => {
    const documented = rows.filter(({ services }) => services.includes(service));
    expect(documented.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(
      familiesOf(service)
        .map(({ name, type }) => `${name} ${type}`)
        .sort(),
    );
  });

  it.each(SERVICES)("names the labels of %s", (service) => {
    const documented = new Map(
      rows.filter((row) => row.services.includes(service)).map((row) => [row.name, row.labels]),
    );
    const wrong = familiesOf(service).flatMap(({ name, labels }) =>
      labels.size === 0 || [...labels.keys()].sort().join() === documented.get(name)?.toSorted().join()
        ? []
        : [`${name}{${[...labels.keys()].join()}}`],
    );
    expect(wrong).toEqual([]);
  });
});

it("each topic that ingest reads has a watermark, on which rules rely", () => {
  const topicsOf = (name: string) => [...(shown.get("ingest")?.get(name)?.labels.get("topic") ?? [])].sort();
  expect(topicsOf("conversation_export_ingest_lag_unknown")).toEqual(Object.values(TOPICS).sort());
  expect(topicsOf("conversation_export_ingest_watermark_age_seconds")).toEqual(
    topicsOf("conversation_export_ingest_lag_unknown"),
  );
});

const series = (service: Service): Map<string, Family> =>
  new Map(familiesOf(service).flatMap((family) => seriesNames(family).map((name) => [name, family])));

/** Labels whose values all exist from the start. */
const CLOSED = ["queue", "state", "fate"];
const valuesOf = (label: string): string[] =>
  SERVICES.flatMap(familiesOf).flatMap(({ labels }) => [...(labels.get(label) ?? [])]);

/** All services when `job` is a variable. */
const servicesOf = (job: string | undefined): readonly Service[] =>
  job === undefined || job.startsWith("$")
    ? SERVICES
    : SERVICES.filter((name) => new RegExp(`^(?:${job})$`).test(JOB + name));

describe.each([
  ["panel", dashboardQueries],
  ["rule", ruleQueries],
] as const)("every query of a %s", (_, queries) => {
  const recorded = new Set(readRules().flatMap(({ record }) => (record === undefined ? [] : [record])));
  const selectors = () =>
    queries().flatMap(({ place, expr }) =>
      readQuery(expr).selectors.map(({ metric, matchers }) => {
        const job = matchers.find(({ label }) => label === "job")?.value;
        const services = servicesOf(job).filter((service) => series(service).has(metric));
        const families = services.flatMap((service) => series(service).get(metric) ?? []);
        return { place, metric, matchers, job, families };
      }),
    );

  it("asks for series that the process exposes", () => {
    const missing = selectors()
      .filter(
        ({ metric, families }) => families.length === 0 && !ELSEWHERE.has(metric) && !recorded.has(metric),
      )
      .map(({ place, metric, job }) => `${place}: ${metric} of ${job}`);
    expect(queries().length).toBeGreaterThan(0);
    expect(missing).toEqual([]);
  });

  it("asks for values of labels that there are", () => {
    const known = new Map(CLOSED.map((label) => [label, valuesOf(label)]));
    const unknown = selectors().flatMap(({ place, metric, matchers }) =>
      matchers.flatMap(({ label, op, value }) => {
        const values = known.get(label);
        if (values === undefined || value.includes("$")) return [];
        const words = op.endsWith("~")
          ? value.split("|").map((word) => new RegExp(`^(?:${word})$`))
          : [value];
        return words
          .filter((word) => !values.some((one) => (typeof word === "string" ? one === word : word.test(one))))
          .map((word) => `${place}: ${metric} ${label} ${word}`);
      }),
    );
    expect(unknown).toEqual([]);
  });
});
