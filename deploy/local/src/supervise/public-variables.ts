import { userInfo } from "node:os";
import type { Surroundings } from "./services.ts";

export const host = "127.0.0.1";

export function metricsUrl(ports: Readonly<Record<string, number>>, variable: string): string {
  return `http://${host}:${ports[variable]}/metrics`;
}

export function publicVariables(
  common: Readonly<Record<string, string>>,
  about: Surroundings,
  ports: Readonly<Record<string, number>>,
  clientId: string,
  key: string,
): Record<string, string> {
  const { HOST: _host, ...shared } = common;
  return {
    ...shared,
    OPERATOR: userInfo().username,
    CLICKHOUSE_URL: about.migratorUrl,
    CLICKHOUSE_MIGRATOR_URL: about.migratorUrl,
    CLICKHOUSE_WRITER_URL: about.writerUrl,
    CLICKHOUSE_READER_URL: about.readerUrl,
    CLICKHOUSE_LOOKUP_URL: about.lookupUrl,
    CLICKHOUSE_INTAKE_URL: about.intakeUrl,
    CLICKHOUSE_JOBS_URL: about.jobsUrl,
    CLICKHOUSE_ANALYST_URL: about.analystUrl,
    EXPORT_API_URL: `http://${host}:${ports["EXPORT_API_PORT"]}/api`,
    EXPORT_API_KEY: key,
    CLIENT_ID: clientId,
    INGEST_METRICS_URL: metricsUrl(ports, "INGEST_METRICS_PORT"),
    EXPORT_API_METRICS_URL: metricsUrl(ports, "EXPORT_API_METRICS_PORT"),
    JOBS_METRICS_URL: metricsUrl(ports, "JOBS_METRICS_PORT"),
  };
}
