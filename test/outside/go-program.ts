import { spawnSync } from "node:child_process";
import { join } from "node:path";

const OWN = join(import.meta.dirname, "../../.cache/bin");

/** A program of Prometheus, from the PATH or from where deploy/check/promtool.sh puts it; undefined: there is none. */
export const findGoProgram = (name: "promtool" | "prometheus"): string | undefined =>
  [name, join(OWN, name)].find((program) => spawnSync(program, ["--version"]).status === 0);
