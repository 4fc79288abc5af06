import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { readPorts, renderEnvFile } from "./env-file.ts";
import { type LocalFolder, socketName } from "./local-folder.ts";
import { acquireLock } from "./lock-file.ts";
import { fileSize, tail } from "./log-tail.ts";
import { cacheFolder, projectFolder } from "./paths.ts";
import { choosePorts } from "./ports.ts";
import { runCommand } from "./run-command.ts";
import { createServer, describeEnding, type Server } from "./server.ts";
import {
  commonEnvironment,
  serviceEnvironment,
  servicePortVariables,
  type ServiceSpec,
  type Surroundings,
} from "./services.ts";
import { startStack } from "./stack.ts";

/** Whoever tries the interface here tries all of it. */
const ALL_SCOPES = "export,end_users,compliance,campaigns";

/** What the supervisor runs: the servers, then the services found below `servicesFolder`. */
export type SupervisorDeps = {
  readonly folder: LocalFolder;
  readonly servicesFolder: string;
  readonly services: readonly ServiceSpec[];
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
};

/** One line of `status`. */
export type ProcessStatus = { readonly name: string; readonly pid: number | null; readonly address: string };

/** What the supervisor answers to `GET /status`. */
export type SupervisorStatus = {
  readonly phase: "starting" | "ready" | "stopping";
  readonly processes: readonly ProcessStatus[];
};

type State = {
  ports: Record<string, number>;
  cursorSecret: string;
  suppressionSecret: string;
  clientId?: string;
  key?: string;
};
type Supervised = { readonly server: Server; readonly address: string };

const host = "127.0.0.1";
const stepDeadlineMs = 120_000;
const stackPortVariables = {
  kafka: "KAFKA_PORT",
  kafkaController: "KAFKA_CONTROLLER_PORT",
  clickhouseHttp: "CLICKHOUSE_HTTP_PORT",
  clickhouseTcp: "CLICKHOUSE_TCP_PORT",
  redis: "REDIS_PORT",
} as const;

function writePrivate(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  chmodSync(path, 0o600);
}

function metricsUrl(ports: Readonly<Record<string, number>>, variable: string): string {
  return `http://${host}:${ports[variable]}/metrics`;
}

/**
 * Runs servers and services until it is asked to stop, by SIGTERM, SIGINT or its socket. Resolves when all of
 * them have ended.
 * @throws Error when they cannot be started; everything has been stopped then.
 */
export async function supervise(deps: SupervisorDeps): Promise<void> {
  const { folder, log } = deps;
  mkdirSync(folder.path, { recursive: true });
  const lock = acquireLock(folder.supervisorLock);
  writeFileSync(folder.supervisorPid, `${process.pid}\n`);
  process.chdir(folder.path);
  rmSync(socketName, { force: true });

  const supervised = new Map<string, Supervised>();
  const stops: (() => Promise<void>)[] = [];
  const control: { phase: SupervisorStatus["phase"] } = { phase: "starting" };
  const asked = Promise.withResolvers<void>();
  const ask = (): void => {
    // Before it is ready nothing holds state: every process dies with this one.
    if (control.phase === "starting") {
      log("stopped while starting");
      cleanUp();
      process.exit(1);
    }
    asked.resolve();
  };
  const cleanUp = (): void => {
    rmSync(join(folder.path, socketName), { force: true });
    for (const { name } of deps.services) rmSync(folder.pidPath(name), { force: true });
    rmSync(folder.supervisorPid, { force: true });
    lock.release();
  };
  process.on("SIGTERM", ask);
  process.on("SIGINT", ask);

  const status = (): SupervisorStatus => ({
    phase: control.phase,
    processes: [...supervised].map(([name, { server, address }]) => ({
      name,
      pid: server.pid ?? null,
      address,
    })),
  });
  async function restart(name: string): Promise<void> {
    const { server } = supervised.get(name) ?? {};
    if (!server) throw new Error(`there is no ${name}; there are ${[...supervised.keys()].join(", ")}`);
    if (control.phase !== "ready") throw new Error(`the stack is ${control.phase}`);
    log(`restarting ${name}`);
    await server.stop();
    await server.start();
    log(`${name} ready (pid ${server.pid})`);
  }
  const http = createHttpServer((request, response) => {
    void answer(request, response, { status, restart, ask, log });
  });
  await new Promise<void>((resolve) => http.listen(socketName, resolve));
  chmodSync(socketName, 0o600);

  const stopAll = async (): Promise<void> => {
    for (const stop of stops.toReversed()) await stop();
    http.close();
    cleanUp();
  };
  try {
    await start(deps, supervised, stops);
  } catch (error) {
    await stopAll();
    throw error;
  }
  control.phase = "ready";
  log("ready");
  await asked.promise;
  control.phase = "stopping";
  log("stopping");
  await stopAll();
  log("stopped");
}

type Controls = {
  readonly status: () => SupervisorStatus;
  readonly restart: (name: string) => Promise<void>;
  readonly ask: () => void;
  readonly log: (line: string) => void;
};

async function answer(request: IncomingMessage, response: ServerResponse, controls: Controls): Promise<void> {
  const reply = (code: number, body: unknown): void => {
    response.writeHead(code, { "content-type": "application/json", connection: "close" });
    response.end(JSON.stringify(body));
  };
  const asked = `${request.method} ${request.url}`;
  const restarted = /^POST \/restart\/([\w-]+)$/.exec(asked)?.[1];
  try {
    if (restarted !== undefined) await controls.restart(restarted);
    else if (asked === "POST /stop") setImmediate(controls.ask);
    else if (asked !== "GET /status") return reply(404, { error: `unknown request ${asked}` });
    reply(200, controls.status());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    controls.log(message);
    reply(500, { error: message });
  }
}

function readState(folder: LocalFolder, env: NodeJS.ProcessEnv): State {
  const kept = existsSync(folder.state)
    ? (JSON.parse(readFileSync(folder.state, "utf8")) as Partial<State>)
    : {};
  const cursorSecret = env["CURSOR_SECRET"] ?? kept.cursorSecret ?? randomBytes(32).toString("base64url");
  const suppressionSecret =
    env["SUPPRESSION_SECRET"] ?? kept.suppressionSecret ?? randomBytes(32).toString("base64url");
  return { ...kept, ports: kept.ports ?? {}, cursorSecret, suppressionSecret };
}

async function start(
  deps: SupervisorDeps,
  supervised: Map<string, Supervised>,
  stops: (() => Promise<void>)[],
): Promise<void> {
  const { folder, env, log } = deps;
  const state = readState(folder, env);
  log("starting kafka, clickhouse and redis");
  const stack = await startStack({ dir: folder.stack, ports: readPorts(env, stackPortVariables), env, log });
  stops.push(stack.stop);
  supervised.set("kafka", { server: stack.kafka, address: stack.kafka.brokers.join(",") });
  supervised.set("clickhouse", {
    server: stack.clickhouse,
    address: `http://${host}:${stack.clickhouse.port}`,
  });
  supervised.set("redis", { server: stack.redis, address: stack.redis.url });

  const names = servicePortVariables(deps.services);
  const fixed = readPorts(env, Object.fromEntries(names.map((name) => [name, name])));
  const ports: Record<string, number> = await choosePorts({ names, fixed, preferred: state.ports });
  state.ports = ports;
  writePrivate(folder.state, JSON.stringify(state));

  const about: Surroundings = {
    kafkaBrokers: stack.kafka.brokers.join(","),
    migratorUrl: stack.clickhouse.url("migrator"),
    writerUrl: stack.clickhouse.url("writer"),
    readerUrl: stack.clickhouse.url("reader"),
    intakeUrl: stack.clickhouse.url("intake"),
    jobsUrl: stack.clickhouse.url("jobs"),
    redisUrl: stack.redis.url,
    cursorSecret: state.cursorSecret,
    suppressionSecret: state.suppressionSecret,
  };
  const common = commonEnvironment(env, about);
  const ops = createOps(deps, { ...env, ...common, CLICKHOUSE_URL: about.migratorUrl });
  log("applying migrations");
  await ops("migrate");
  log("creating topics");
  await ops("topics", "create");

  // One after the other would add their start times up.
  await Promise.all(
    deps.services.map(async (service) => {
      const server = createService(deps, service, about, ports);
      supervised.set(service.name, { server, address: metricsUrl(ports, service.metricsPortVariable) });
      stops.push(server.stop);
      await server.start();
      log(`${service.name} ready (pid ${server.pid})`);
    }),
  );

  const clientId = env["CLIENT_ID"] ?? "demo-client";
  if (state.key === undefined || state.clientId !== clientId) {
    log(`creating the client ${clientId} and a key`);
    await ops("clients", "create", clientId).catch((error: Error) => {
      if (!/exist/i.test(error.message)) throw error;
    });
    const wanted = ["--client", clientId, "--scopes", ALL_SCOPES, "--json"];
    const created: unknown = JSON.parse(await ops("keys", "create", ...wanted));
    const key = (created as { key?: unknown }).key;
    if (typeof key !== "string") throw new Error("`keys create --json` printed no field `key`");
    state.clientId = clientId;
    state.key = key;
    writePrivate(folder.state, JSON.stringify(state));
  }
  writePrivate(folder.env, renderEnvFile(publicVariables(common, about, ports, clientId, state.key)));
}

/** The variables of `.local/env`, those of the operators' command line among them. */
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
    CLICKHOUSE_URL: about.migratorUrl,
    CLICKHOUSE_MIGRATOR_URL: about.migratorUrl,
    CLICKHOUSE_WRITER_URL: about.writerUrl,
    CLICKHOUSE_READER_URL: about.readerUrl,
    CLICKHOUSE_INTAKE_URL: about.intakeUrl,
    CLICKHOUSE_JOBS_URL: about.jobsUrl,
    EXPORT_API_URL: `http://${host}:${ports["EXPORT_API_PORT"]}/api`,
    EXPORT_API_KEY: key,
    CLIENT_ID: clientId,
    INGEST_METRICS_URL: metricsUrl(ports, "INGEST_METRICS_PORT"),
    EXPORT_API_METRICS_URL: metricsUrl(ports, "EXPORT_API_METRICS_PORT"),
    JOBS_METRICS_URL: metricsUrl(ports, "JOBS_METRICS_PORT"),
  };
}

function mainOf(deps: SupervisorDeps, service: string): string {
  return join(deps.servicesFolder, service, "src", "main.ts");
}

/** Returns a function that runs the operators' command line and resolves to what it printed. */
function createOps(deps: SupervisorDeps, env: NodeJS.ProcessEnv): (...words: string[]) => Promise<string> {
  const { folder } = deps;
  return async (...words) => {
    const logPath = folder.logPath("ops");
    const outputPath = join(folder.path, "ops.out");
    const from = fileSize(logPath);
    try {
      const finished = await runCommand(
        {
          command: [process.execPath, mainOf(deps, "ops"), ...words],
          cwd: projectFolder,
          env: { ...env, NODE_COMPILE_CACHE: join(cacheFolder, "compile") },
          logPath,
          outputPath,
        },
        stepDeadlineMs,
      );
      const output = readFileSync(outputPath, "utf8");
      if (finished.code === 0) return output;
      const end = `${tail(logPath, 25, from)}\n${output}`.trim();
      throw new Error(`\`ops ${words.join(" ")}\` failed (exit code ${finished.code}). Its output:\n${end}`);
    } finally {
      rmSync(outputPath, { force: true });
    }
  };
}

function createService(
  deps: SupervisorDeps,
  service: ServiceSpec,
  about: Surroundings,
  ports: Readonly<Record<string, number>>,
): Server {
  const { folder, env, log } = deps;
  const { name } = service;
  const readyUrl = new URL("/ready", metricsUrl(ports, service.metricsPortVariable));
  return createServer({
    name,
    tied: {
      command: [process.execPath, mainOf(deps, name)],
      cwd: projectFolder,
      env: {
        ...serviceEnvironment(service, env, about, ports),
        NODE_COMPILE_CACHE: join(cacheFolder, "compile"),
      },
      logPath: folder.logPath(name),
    },
    identityPath: folder.identityPath(name),
    pidPath: folder.pidPath(name),
    startDeadlineMs: 60_000,
    stopDeadlineMs: 15_000,
    ready: async () => {
      const answered = await fetch(readyUrl, {
        headers: { connection: "close" },
        signal: AbortSignal.timeout(2_000),
      });
      await answered.arrayBuffer();
      return answered.status === 200;
    },
    onUnexpectedEnd: (ending) => {
      log(`${name} ended by itself: ${describeEnding(ending)}; start it again with: make restart S=${name}`);
    },
  });
}
