import { choosePorts } from "@conversation-export/local-stack";
import type { ScrapeTarget } from "./prometheus.ts";
import { type ServedProgram, startServedProgram } from "./served-program.ts";

/** `api`: without TLS and credentials. */
export const startJobMetrics = async (
  program: string,
  { api, namespace }: { readonly api: string; readonly namespace: string },
): Promise<ServedProgram & { readonly target: ScrapeTarget }> => {
  const { port, telemetry } = await choosePorts({ names: ["port", "telemetry"], fixed: {} });
  const address = `127.0.0.1:${port}`;
  const served = await startServedProgram(
    program,
    [
      `--apiserver=http://${api}`,
      `--namespaces=${namespace}`,
      "--resources=jobs",
      "--host=127.0.0.1",
      `--port=${port}`,
      "--telemetry-host=127.0.0.1",
      `--telemetry-port=${telemetry}`,
      "--logtostderr=false",
      "--stderrthreshold=FATAL",
    ],
    `http://${address}/healthz`,
  );
  return { ...served, target: { job: "kube-state-metrics", address, namespace, pod: "kube-state-metrics" } };
};
