import { userInfo } from "node:os";
import { clickhouseUsers } from "../servers/clickhouse.ts";
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
    CLICKHOUSE_URL: about.clickhouseUrl("migrator"),
    ...Object.fromEntries(
      clickhouseUsers.map((user) => [`CLICKHOUSE_${user.toUpperCase()}_URL`, about.clickhouseUrl(user)]),
    ),
    EXPORT_API_URL: `http://${host}:${ports["EXPORT_API_PORT"]}/api`,
    EXPORT_API_KEY: key,
    CLIENT_ID: clientId,
    INGEST_METRICS_URL: metricsUrl(ports, "INGEST_METRICS_PORT"),
    EXPORT_API_METRICS_URL: metricsUrl(ports, "EXPORT_API_METRICS_PORT"),
    JOBS_METRICS_URL: metricsUrl(ports, "JOBS_METRICS_PORT"),
  };
}
