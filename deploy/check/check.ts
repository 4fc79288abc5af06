import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";

/** Slowest first, so that they end at about the same time. */
const STEPS = ["lint", "types", "dead-code", "licences", "format:check", "import-law"];

interface StepResult {
  readonly exitCode: number;
  readonly output: string;
  readonly seconds: number;
}

function runStep(name: string): Promise<StepResult> {
  const start = performance.now();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--run", name], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const append = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on("data", append);
    child.stderr.on("data", append);
    child.on("error", (error) => append(Buffer.from(error.message)));
    child.on("close", (code) => {
      resolve({ exitCode: code ?? 1, output, seconds: (performance.now() - start) / 1000 });
    });
  });
}

const waiting = [...STEPS];
let failed = 0;

async function work(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const { exitCode, output, seconds } = await runStep(name);
    console.log(`${exitCode === 0 ? "ok    " : "FAILED"} ${name} (${seconds.toFixed(1)} s)`);
    if (exitCode !== 0) {
      failed += 1;
      console.log(output.trimEnd());
    }
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
if (failed > 0) {
  console.log(`${failed} of ${STEPS.length} checks failed`);
  process.exitCode = 1;
}
