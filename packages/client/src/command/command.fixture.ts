import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach } from "vitest";
import { run } from "./program.ts";
import { type Service, startService } from "./service.fixture.ts";

export type Place = {
  readonly service: Service;
  readonly root: string;
  folder(): string;
  command(
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
};

const textOf = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? "";

export const usePlace = (): Place => {
  let service: Service;
  let root: string;
  beforeEach(async () => {
    service = await startService();
    root = mkdtempSync(join(tmpdir(), "client-"));
  });
  afterEach(async () => {
    await service.server.close();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    get service() {
      return service;
    },
    get root() {
      return root;
    },
    folder: () => join(root, "copy"),
    command: async (args, env = {}) => {
      const stdout = new PassThrough();
      const stderr = new PassThrough();
      const given = { EXPORT_API_URL: service.url, EXPORT_API_KEY: "k", ...env };
      const code = await run(args, { env: given, stdout, stderr, signal: new AbortController().signal });
      return { code, out: textOf(stdout), err: textOf(stderr) };
    },
  };
};
