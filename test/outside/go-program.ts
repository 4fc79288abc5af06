import { spawnSync } from "node:child_process";
import { join } from "node:path";

const OWN = join(import.meta.dirname, "../../.cache/bin");

/** A program from the PATH or from where deploy/check/go-program.sh puts it; undefined: there is none. */
export const findGoProgram = (name: "promtool" | "prometheus" | "kube-state-metrics"): string | undefined =>
  [name, join(OWN, name)].find((program) => spawnSync(program, ["--help"]).status === 0);
