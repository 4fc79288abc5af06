import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { waitForLock } from "../process/lock-file.ts";
import { cacheFolder } from "../paths.ts";
import { runCommand } from "../process/run-command.ts";
import { findProgram } from "../process/tied-process.ts";

const downloadDeadlineMs = 300_000;

/** The folder appears only when complete; concurrent calls download once. */
export async function fetchJars(
  name: string,
  pomPath: string,
  env: NodeJS.ProcessEnv,
  log: (line: string) => void,
): Promise<string> {
  const folder = join(cacheFolder, name);
  if (existsSync(folder)) return folder;
  if (!findProgram("mvn", env)) {
    throw new Error(
      `Maven is missing: it downloads ${name} once. Install it (Debian or Ubuntu: apt-get install maven, ` +
        "macOS: brew install maven) and put mvn on the PATH.",
    );
  }
  const lock = await waitForLock(join(cacheFolder, "maven.lock"), downloadDeadlineMs);
  try {
    if (existsSync(folder)) return folder;
    log(`downloading ${name} with Maven`);
    const partial = `${folder}.partial`;
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    const logPath = join(cacheFolder, `${name}.maven.log`);
    rmSync(logPath, { force: true });
    const goal = ["dependency:copy-dependencies", `-DoutputDirectory=${partial}`];
    const finished = await runCommand(
      { command: ["mvn", "-q", "-B", "-f", pomPath, ...goal], cwd: cacheFolder, env, logPath },
      downloadDeadlineMs,
    );
    if (finished.code !== 0) {
      const end = finished.log.trimEnd().split("\n").slice(-15).join("\n");
      throw new Error(`Maven could not download ${name}. The end of its output, ${logPath}:\n${end}`);
    }
    renameSync(partial, folder);
    return folder;
  } finally {
    lock.release();
  }
}
