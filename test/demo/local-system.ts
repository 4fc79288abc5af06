import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { GROUP, TOPICS } from "../system/system.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLI = join(ROOT, "deploy/local/src/cli.ts");

export type LocalSystem = {
  readonly folder: string;
  start(): Promise<Readonly<Record<string, string>>>;
  /** Also processes that are still starting. */
  stop(): Promise<void>;
};

const readEnvFile = (path: string): Record<string, string> =>
  Object.fromEntries(
    readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line.includes("="))
      .map((line) => {
        const at = line.indexOf("=");
        return [line.slice(0, at), line.slice(at + 1).replace(/^'(.*)'$/, "$1")];
      }),
  );

export const createLocalSystem = (clientId: string, name = "demo"): LocalSystem => {
  const folder = join(ROOT, ".local", name);
  let starting: ChildProcess | undefined;

  const run = (command: string, detached: boolean): ChildProcess =>
    spawn(process.execPath, [CLI, command, "--folder", folder], {
      cwd: ROOT,
      detached,
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        ...process.env,
        FRESH: "1",
        // Readers do not wait for rate limits.
        RATE_LIMITS: "off",
        RATE_LIMITS_DATA_SUBJECT_REQUEST: "off",
        CLIENT_ID: clientId,
        KAFKA_GROUP_ID: GROUP,
        TOPIC_CONVERSATIONS: TOPICS.conversation,
        TOPIC_MESSAGES: TOPICS.message,
        TOPIC_END_USERS: TOPICS.end_user,
      },
    });

  return {
    folder,
    start: async () => {
      starting = run("up", false);
      const [code] = (await once(starting, "exit")) as [number | null];
      starting = undefined;
      if (code !== 0) throw new Error("the servers and services do not start");
      return readEnvFile(join(folder, "env"));
    },
    stop: async () => {
      if (starting !== undefined) {
        const ended = once(starting, "exit");
        starting.kill("SIGTERM");
        await ended;
      }
      // Detached: a second Ctrl-C must not end the clean-up.
      await once(run("down", true), "exit");
    },
  };
};
