import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder, projectFolder } from "../paths.ts";
import { fileSize, tail } from "../process/log-tail.ts";
import { runCommand } from "../process/run-command.ts";
import { createServer, describeEnding, type Server } from "../process/server.ts";
import type { Ops } from "../prepare-system.ts";
import type { LocalFolder } from "./local-folder.ts";
import { metricsUrl } from "./public-variables.ts";
import { serviceEnvironment, type ServiceSpec, type Surroundings } from "./services.ts";

export type SupervisorDeps = {
  readonly folder: LocalFolder;
  readonly servicesFolder: string;
  readonly services: readonly ServiceSpec[];
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
};

const stepDeadlineMs = 120_000;

function mainOf(deps: SupervisorDeps, service: string): string {
  return join(deps.servicesFolder, service, "src", "main.ts");
}

export function createOps(deps: SupervisorDeps): Ops {
  const { folder } = deps;
  return async (env, ...words) => {
    const logPath = folder.logPath("ops");
    const outputPath = join(folder.path, "ops.out");
    const from = fileSize(logPath);
    try {
      const finished = await runCommand(
        {
          command: [process.execPath, mainOf(deps, "ops"), ...words],
          cwd: projectFolder,
          env: { ...env, OPERATOR: "make up", NODE_COMPILE_CACHE: join(cacheFolder, "compile") },
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

export function createService(
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
      command: [process.execPath, `--inspect-port=${service.inspectPort}`, mainOf(deps, name)],
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
