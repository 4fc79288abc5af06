import { execFile } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "../chart/helm.ts";

/** Returns the standard output; rejects with the last 30 lines of all output. */
export const runScript = async (
  script: string,
  options: {
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly args?: readonly string[];
  },
): Promise<string> => {
  const helm = findProgram("helm");
  if (helm === null) throw new Error("helm is missing: make chart builds it");
  const path = `${dirname(helm)}${delimiter}${process.env["PATH"]}`;
  const running = promisify(execFile)(
    "bash",
    ["-euo", "pipefail", "-c", script, "script", ...(options.args ?? [])],
    { cwd: options.cwd, env: { ...process.env, ...options.env, PATH: path }, maxBuffer: 64 * 1024 * 1024 },
  );
  running.child.stdin?.end();
  try {
    return (await running).stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${stdout}${stderr}`.trim().split("\n").slice(-30).join("\n"), { cause: error });
  }
};
