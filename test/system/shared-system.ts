import { createServer } from "node:http";
import type { TestProject } from "vitest/node";
import { listen } from "./listen.ts";
import { startSystem, type System } from "./system.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** A request to this address starts the shared system. */
    readonly sharedSystem: string;
  }
}

/** Runs in vitest's own process; the system starts on the first request. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  let starting: Promise<System> | undefined;
  const start = async (): Promise<System> => {
    const shards = Number(project.config.env["TEST_SHARDS"] ?? 1);
    const system = await startSystem(`shared-${project.name}`, { shards });
    await Promise.all([system.service("ingest"), system.service("export-api")]);
    return system;
  };
  const server = createServer((_request, response) => {
    starting ??= start();
    starting.then(
      ({ addresses }) => response.end(JSON.stringify(addresses)),
      (error: unknown) => {
        starting = undefined;
        response.writeHead(500).end(String(error));
      },
    );
  });
  const { port, close } = await listen(server);
  project.provide("sharedSystem", `http://127.0.0.1:${port}/`);
  return async () => {
    await close();
    await (await starting?.catch(() => undefined))?.stop();
  };
};
