import { PassThrough } from "node:stream";
import { afterEach, beforeEach } from "vitest";
import { run } from "./program.ts";
import { useRoot } from "./root.fixture.ts";
import { type Service, startService } from "./service.fixture.ts";

export const LIST = ["--list", "conversations"];

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
  const path = useRoot();
  let service: Service;
  beforeEach(async () => {
    service = await startService();
  });
  afterEach(() => service.server.close());
  return {
    get service() {
      return service;
    },
    get root() {
      return path();
    },
    folder: () => path("copy"),
    command: async (args, env = {}) => {
      const stdout = new PassThrough();
      const stderr = new PassThrough();
      const given = { EXPORT_API_URL: service.url, EXPORT_API_KEY: "k", ...env };
      const code = await run(args, { env: given, stdout, stderr, signal: new AbortController().signal });
      return { code, out: textOf(stdout), err: textOf(stderr) };
    },
  };
};
