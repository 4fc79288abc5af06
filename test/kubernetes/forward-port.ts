import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { findProgram } from "../chart/helm.ts";

/** A port of this machine behind which a Service is, until `stop`. */
export const forwardPort = async (
  namespace: string,
  service: string,
): Promise<{ readonly port: number; stop(): Promise<void> }> => {
  const args = ["port-forward", "--namespace", namespace, `service/${service}`, ":80"];
  const child = spawn(findProgram("kubectl") ?? "kubectl", args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    const [, port] = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line) ?? [];
    if (port === undefined) continue;
    return {
      port: Number(port),
      stop: async () => {
        child.kill();
        await exited;
      },
    };
  }
  throw new Error(`no port of ${service} is forwarded`);
};
