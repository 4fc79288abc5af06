import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join, relative, resolve } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type LocalFolder, localFolder, socketName } from "./supervise/local-folder.ts";
import { lockOwner } from "./process/lock-file.ts";
import { fileSize, readFrom } from "./process/log-tail.ts";
import { projectFolder } from "./paths.ts";
import { isAlive, isStopped, readIdentity, waitForEnd } from "./process/process-identity.ts";
import { services } from "./supervise/services.ts";
import type { SupervisorStatus } from "./supervise/control-socket.ts";
import {
  describeProcesses,
  describeSystems,
  exitCodes,
  type SystemStatus,
} from "./supervise/status-report.ts";
import { serverNames } from "./stack.ts";
import { supervise } from "./supervise/supervisor.ts";

const usage = `usage: node deploy/local/src/cli.ts <command>
  up               start servers and services in the background (FRESH=1: from empty folders)
  down             stop them
  restart <name>   stop one service or server and start it again
  status           what runs; exits with ${exitCodes.allUp}: all up, ${exitCodes.someDown}: something is down, ${exitCodes.nothingUp}: nothing is up
options: --folder DIR (default .local), --services DIR (default services)`;

const answerDeadlineMs = 10_000;
// 15 s for the services, then as long for each server.
const stopDeadlineMs = 70_000;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The socket's name is relative to the folder. */
async function call(
  folder: LocalFolder,
  method: string,
  path: string,
  signal?: AbortSignal,
): Promise<SupervisorStatus> {
  process.chdir(folder.path);
  const sent = request({ socketPath: socketName, method, path, agent: false, signal }).end();
  // One after the response fails its reading too.
  sent.on("error", () => undefined);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const body = (await json(response)) as SupervisorStatus & { error?: string };
  if (response.statusCode === 200) return body;
  throw new Error(body.error ?? `the supervisor answered ${response.statusCode}`);
}

/** Returns the new offset. */
function follow(folder: LocalFolder, from: number): number {
  const text = readFrom(folder.supervisorLog, from);
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  for (const line of complete.split("\n").slice(0, -1)) print(`  ${line.replace(/^\S+Z /, "")}`);
  return from + Buffer.byteLength(complete);
}

function spawnSupervisor(folder: LocalFolder, servicesFolder: string): ChildProcess {
  const log = openSync(folder.supervisorLog, "a");
  try {
    return spawn(
      process.execPath,
      [import.meta.filename, "supervise", "--folder", folder.path, "--services", servicesFolder],
      { cwd: projectFolder, detached: true, stdio: ["ignore", log, log] },
    );
  } finally {
    closeSync(log);
  }
}

async function up(folder: LocalFolder, servicesFolder: string, fresh: boolean): Promise<number> {
  mkdirSync(folder.path, { recursive: true });
  if (fresh) {
    await down(folder);
    rmSync(folder.stack, { recursive: true, force: true });
    for (const name of readdirSync(folder.path)) {
      if (name.endsWith(".log") || name === "state.json" || name === "env") rmSync(join(folder.path, name));
    }
  }
  const running = lockOwner(folder.supervisorLock);
  let from = fileSize(folder.supervisorLog);
  if (running && (await call(folder, "GET", "/status").catch(() => undefined))?.phase === "ready") {
    print(`already up (supervisor pid ${running.pid}); variables in ${folder.env}`);
    return 0;
  }
  const child = running ? undefined : spawnSupervisor(folder, servicesFolder);
  let interrupted = false;
  const interrupt = (): void => {
    interrupted = true;
    const pid = child?.pid ?? running?.pid;
    if (pid !== undefined) process.kill(pid, "SIGTERM");
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const hasEnded = (): boolean =>
    child ? child.exitCode !== null || child.signalCode !== null : running !== undefined && !isAlive(running);
  for (;;) {
    const ended = hasEnded();
    from = follow(folder, from);
    if (ended) {
      print(
        interrupted
          ? "interrupted, everything was stopped"
          : `up failed; see the log ${folder.supervisorLog}`,
      );
      return interrupted ? 130 : 1;
    }
    const status = await call(folder, "GET", "/status").catch(() => undefined);
    if (status?.phase === "ready" && !interrupted) {
      follow(folder, from);
      printSummary(folder, status);
      child?.unref();
      return 0;
    }
    await sleep(100);
  }
}

function printSummary(folder: LocalFolder, status: SupervisorStatus): void {
  for (const line of describeProcesses(status, isStopped)) print(line);
  const url = /^EXPORT_API_URL=(.*)$/m.exec(readFileSync(folder.env, "utf8"))?.[1];
  print(`export API: ${url}`);
  print(`variables:  . ${folder.env}`);
  print(`logs:       ${join(folder.path, "*.log")} and ${join(folder.stack, "*", "server.log")}`);
}

const runningSystems = (folder: LocalFolder): LocalFolder[] =>
  [folder, localFolder(join(folder.path, "demo"))].filter((one) => lockOwner(one.supervisorLock));

async function askSystems(folder: LocalFolder): Promise<(SystemStatus & { readonly system: LocalFolder })[]> {
  const cwd = process.cwd();
  const asked: (SystemStatus & { readonly system: LocalFolder })[] = [];
  for (const system of runningSystems(folder)) {
    const answered = call(system, "GET", "/status", AbortSignal.timeout(answerDeadlineMs));
    const status = await answered.catch(() => undefined);
    asked.push({ system, folder: relative(cwd, system.path) || ".", status });
  }
  return asked;
}

async function killLeftovers(folder: LocalFolder): Promise<void> {
  const ofServices = services.map(({ name }) => folder.identityPath(name));
  const ofServers = serverNames.map((name) => join(folder.stack, name, "server.identity"));
  for (const path of [...ofServices, ...ofServers]) {
    const identity = readIdentity(path);
    if (identity && isAlive(identity)) {
      process.kill(identity.pid, "SIGKILL");
      await waitForEnd(identity, 5_000);
      print(`killed the process ${identity.pid} that was left running`);
    }
    rmSync(path, { force: true });
  }
  for (const { name } of services) rmSync(folder.pidPath(name), { force: true });
  rmSync(folder.supervisorPid, { force: true });
  rmSync(folder.supervisorLock, { force: true });
  rmSync(join(folder.path, socketName), { force: true });
}

async function down(folder: LocalFolder): Promise<void> {
  const running = lockOwner(folder.supervisorLock);
  if (running) {
    const from = fileSize(folder.supervisorLog);
    process.kill(running.pid, "SIGTERM");
    if (!(await waitForEnd(running, stopDeadlineMs))) {
      print(`the supervisor (pid ${running.pid}) does not stop, killing it`);
      process.kill(running.pid, "SIGKILL");
      await waitForEnd(running, 5_000);
    }
    follow(folder, from);
  }
  await killLeftovers(folder);
}

async function downAll(folder: LocalFolder): Promise<number> {
  const running = runningSystems(folder);
  if (running.length === 0) print("nothing was up");
  await down(folder);
  for (const one of running) if (one.path !== folder.path) await down(one);
  return 0;
}

/** make writes them after `--` in MAKEFLAGS. */
const givenVariables = (flags = ""): string[] =>
  [...(/(?:^| )-- (.*)$/.exec(flags)?.[1] ?? "").matchAll(/(?:^| )(\w+)=/g)].map(([, name = ""]) => name);

async function restart(folder: LocalFolder, name: string | undefined): Promise<number> {
  if (name === undefined) {
    print(`which one? ${services.map((service) => service.name).join(", ")} (make restart S=ingest)`);
    return 1;
  }
  const asked = await askSystems(folder);
  const isDownIn = ({ status }: SystemStatus): boolean =>
    status?.processes.some((process) => process.name === name && process.pid === null) ?? false;
  const target = asked.find(isDownIn) ?? asked[0];
  if (target === undefined) return status(folder);
  const ignored = givenVariables(process.env["MAKEFLAGS"]).filter((one) => one !== "S");
  if (ignored.length > 0)
    print(
      `ignored: ${ignored.join(", ")}; services keep the variables of make up (make down, then make up with them)`,
    );
  const { processes } = await call(target.system, "POST", `/restart/${name}`);
  print(`${name} is ready (pid ${processes.find((process) => process.name === name)?.pid})`);
  return 0;
}

async function status(folder: LocalFolder): Promise<number> {
  const { lines, exitCode } = describeSystems(await askSystems(folder), isStopped);
  for (const line of lines) print(line);
  return exitCode;
}

async function runSupervisor(folder: LocalFolder, servicesFolder: string): Promise<number> {
  const log = (line: string): void => print(`${new Date().toISOString()} ${line}`);
  try {
    await supervise({ folder, servicesFolder, services, env: process.env, log });
    return 0;
  } catch (error) {
    log(`failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      folder: { type: "string", default: join(projectFolder, ".local") },
      services: { type: "string", default: join(projectFolder, "services") },
    },
  });
  const folder = localFolder(resolve(values.folder));
  const servicesFolder = resolve(values.services);
  const [command, name] = positionals;
  switch (command) {
    case "up":
      return up(folder, servicesFolder, process.env["FRESH"] === "1");
    case "down":
      return downAll(folder);
    case "restart":
      return restart(folder, name);
    case "status":
      return status(folder);
    case "supervise":
      return runSupervisor(folder, servicesFolder);
    default:
      print(usage);
      return 2;
  }
}

// `up | head` closes the pipe early; the command continues.
process.stdout.on("error", () => undefined);
try {
  process.exitCode = await main();
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
