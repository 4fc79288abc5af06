import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { choosePorts, tied } from "@conversation-export/local-stack";
import { preparePythonTools } from "./python-tools.ts";
import { untilItWorks } from "../system/until.ts";

/** S3 in memory; it takes any credentials. */
export type ObjectStore = {
  readonly endpoint: string;
  /** `place`: bucket, or bucket and key. */
  put(place: string, content?: Buffer): Promise<void>;
  stop(): Promise<void>;
};

export const startObjectStore = async (logFile: string): Promise<ObjectStore> => {
  const programs = await preparePythonTools("s3");
  const { s3 } = await choosePorts({ names: ["s3"], fixed: {} });
  const [program, ...args] = tied([join(programs, "moto_server"), "-H", "127.0.0.1", "-p", String(s3)]);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(logFile);
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const exited = once(child, "exit");
  const endpoint = `http://127.0.0.1:${s3}`;
  await untilItWorks(`the object store answers (log: ${logFile})`, 60_000, () => fetch(endpoint));
  return {
    endpoint,
    put: async (place, content) => {
      const body = content === undefined ? {} : { body: new Uint8Array(content) };
      const response = await fetch(`${endpoint}/${place}`, {
        method: "PUT",
        headers: { "content-type": "application/octet-stream" },
        ...body,
      });
      if (!response.ok) throw new Error(`${response.status} for ${place}: ${await response.text()}`);
    },
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
};
