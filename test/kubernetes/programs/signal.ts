import { readdirSync, readFileSync } from "node:fs";

// Signals the process of a pod from its node. Usage: UID FILE SIGNAL
const [uid = "", file = "", signal = ""] = process.argv.slice(2);

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended meanwhile.
    return "";
  }
};

const found = readdirSync("/proc")
  .filter((name) => /^\d+$/.test(name))
  .filter((pid) => textOf(`/proc/${pid}/cgroup`).replaceAll("_", "-").includes(uid))
  .filter((pid) => textOf(`/proc/${pid}/cmdline`).split("\0").includes(file));
if (found.length !== 1) throw new Error(`${found.length} processes of ${file} in pod ${uid}`);
process.kill(Number(found[0]), signal);
