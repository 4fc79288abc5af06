import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { startSystem, type System } from "./system.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Who asks at this address starts the shared system, and gets its addresses. */
    readonly sharedSystem: string;
  }
}

/**
 * Runs in vitest's own process, before the tests of a project: gives files of tests one running system, with ingest
 * and export-api, which starts when the first of them asks for it.
 */
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
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  project.provide("sharedSystem", `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  return async () => {
    server.close();
    await (await starting?.catch(() => undefined))?.stop();
  };
};
