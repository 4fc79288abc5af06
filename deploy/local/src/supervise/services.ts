import { LIST_NAMES } from "@conversation-export/domain";
import { eventTopic } from "@conversation-export/runtime";
import type { ClickhouseUser } from "../servers/clickhouse.ts";

/** With credentials. */
export type Surroundings = {
  readonly kafkaBrokers: string;
  readonly clickhouseUrl: (user: ClickhouseUser) => string;
  readonly redisUrl: string;
  readonly cursorSecret: string;
  readonly suppressionSecret: string;
};

/** `name`: its folder below services. */
export type ServiceSpec = {
  readonly name: string;
  readonly clickhouseUser: ClickhouseUser;
  readonly answersRequests?: true;
  readonly usesRedis?: true;
  readonly metricsPortVariable: string;
  /** After SIGUSR1; also in .vscode/launch.json. */
  readonly inspectPort: number;
  readonly portVariable?: string;
};

/** In the order of their start. */
export const services = [
  {
    name: "ingest",
    clickhouseUser: "writer",
    metricsPortVariable: "INGEST_METRICS_PORT",
    inspectPort: 9229,
  },
  {
    name: "export-api",
    clickhouseUser: "reader",
    answersRequests: true,
    usesRedis: true,
    metricsPortVariable: "EXPORT_API_METRICS_PORT",
    inspectPort: 9230,
    portVariable: "EXPORT_API_PORT",
  },
  {
    name: "jobs",
    clickhouseUser: "jobs",
    usesRedis: true,
    metricsPortVariable: "JOBS_METRICS_PORT",
    inspectPort: 9231,
  },
] as const satisfies readonly ServiceSpec[];

const SHARED_SETTINGS = [
  "CLUSTER",
  "LANDING",
  "LANDING_DAYS",
  "UPLOAD_WINDOW_SECONDS",
  "ERASURE_DEADLINE_HOURS",
  "CURSOR_SECRET_PREVIOUS",
] as const;

export function commonEnvironment(given: NodeJS.ProcessEnv, about: Surroundings): Record<string, string> {
  const settings = SHARED_SETTINGS.flatMap((name): [string, string][] => {
    const value = given[name];
    return value === undefined || value === "" ? [] : [[name, value]];
  });
  const topics = LIST_NAMES.map(eventTopic).map(({ name, byDefault }) => [name, given[name] ?? byDefault]);
  return {
    ...Object.fromEntries(settings),
    KAFKA_BROKERS: about.kafkaBrokers,
    REDIS_URL: about.redisUrl,
    CURSOR_SECRET: about.cursorSecret,
    SUPPRESSION_SECRET: about.suppressionSecret,
    ...Object.fromEntries(topics),
    TOPIC_SMS_TRIGGERS: given["TOPIC_SMS_TRIGGERS"] ?? "sms-triggers",
    KAFKA_GROUP_ID: given["KAFKA_GROUP_ID"] ?? "conversation-export-ingest",
    HOST: "127.0.0.1",
  };
}

/** The stack's variables win over the caller's. */
export function serviceEnvironment(
  service: ServiceSpec,
  given: NodeJS.ProcessEnv,
  about: Surroundings,
  ports: Readonly<Record<string, number>>,
): NodeJS.ProcessEnv {
  const { metricsPortVariable, portVariable } = service;
  const portOf = (name: string, variable: string | undefined): NodeJS.ProcessEnv => {
    const port = variable === undefined ? undefined : ports[variable];
    return port === undefined ? {} : { [name]: String(port) };
  };
  return {
    // A killed ingest holds its partitions until its session ends.
    KAFKA_SESSION_TIMEOUT_MS: "10000",
    ...given,
    ...commonEnvironment(given, about),
    CLICKHOUSE_URL: about.clickhouseUrl(service.clickhouseUser),
    // A test then notices a read of it.
    REDIS_URL: service.usesRedis === true ? about.redisUrl : undefined,
    ...(service.answersRequests === true && {
      CLICKHOUSE_LOOKUP_URL: about.clickhouseUrl("lookup"),
      CLICKHOUSE_INTAKE_URL: about.clickhouseUrl("intake"),
    }),
    ...portOf("METRICS_PORT", metricsPortVariable),
    ...portOf("PORT", portVariable),
  };
}

export function servicePortVariables(specs: readonly ServiceSpec[]): string[] {
  return specs.flatMap((s) =>
    s.portVariable === undefined ? [s.metricsPortVariable] : [s.metricsPortVariable, s.portVariable],
  );
}
