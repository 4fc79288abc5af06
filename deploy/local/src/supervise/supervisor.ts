import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { SCOPES } from "@conversation-export/warehouse";
import { readPorts, renderEnvFile } from "./env-file.ts";
import { type LocalFolder, socketName } from "./local-folder.ts";
import { answer, type SupervisorStatus } from "./control-socket.ts";
import { acquireLock } from "../process/lock-file.ts";
import { choosePorts } from "../process/ports.ts";
import type { Server } from "../process/server.ts";
import { commonEnvironment, servicePortVariables } from "./services.ts";
import { prepareSystem } from "../prepare-system.ts";
import { host, metricsUrl, publicVariables } from "./public-variables.ts";
import { createOps, createService, type SupervisorDeps } from "./service-process.ts";

type State = {
  ports: Record<string, number>;
  cursorSecret: string;
  suppressionSecret: string;
  clientId?: string;
  key?: string;
};
type Supervised = { readonly server: Server; readonly address: string };

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

/** Resolves when all have ended. */
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
    // No process holds state yet, and each dies with this one.
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
    void answer(request, response, { status, restart, log });
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
  log("starting kafka, clickhouse and redis, then migrations and topics");
  const runOps = createOps(deps);
  const { stack, about, operator } = await prepareSystem({
    stack: { dir: folder.stack, ports: readPorts(env, stackPortVariables), env, log },
    env,
    cursorSecret: state.cursorSecret,
    suppressionSecret: state.suppressionSecret,
    ops: runOps,
    onServers: ({ kafka, clickhouse, redis }) => {
      supervised.set("kafka", { server: kafka, address: kafka.brokers.join(",") });
      supervised.set("clickhouse", { server: clickhouse, address: `http://${host}:${clickhouse.port}` });
      supervised.set("redis", { server: redis, address: redis.url });
    },
  });
  stops.push(stack.stop);
  const ops = (...words: string[]): Promise<string> => runOps(operator, ...words);

  const names = servicePortVariables(deps.services);
  const fixed = readPorts(env, Object.fromEntries(names.map((name) => [name, name])));
  const ports: Record<string, number> = await choosePorts({ names, fixed, preferred: state.ports });
  state.ports = ports;
  writePrivate(folder.state, JSON.stringify(state));

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
    // So that every endpoint can be tried.
    const wanted = ["--client", clientId, "--scopes", SCOPES.join(), "--json"];
    const created: unknown = JSON.parse(await ops("keys", "create", ...wanted));
    const key = (created as { key?: unknown }).key;
    if (typeof key !== "string") throw new Error("`keys create --json` printed no field `key`");
    state.clientId = clientId;
    state.key = key;
    writePrivate(folder.state, JSON.stringify(state));
  }
  writePrivate(
    folder.env,
    renderEnvFile(publicVariables(commonEnvironment(env, about), about, ports, clientId, state.key)),
  );
}
