import { spawnSync } from "node:child_process";
import { join } from "node:path";

const OWN = join(import.meta.dirname, "../../.cache/bin");

/** deploy/check/go-program.sh installs it. */
export const findGoProgram = (name: "promtool" | "prometheus" | "kube-state-metrics"): string | undefined =>
  [name, join(OWN, name)].find((program) => spawnSync(program, ["--help"]).status === 0);
