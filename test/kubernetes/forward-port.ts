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
  let port = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    port = Number(/^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0);
    if (port > 0) break;
  }
  if (port === 0) throw new Error(`no port of ${service} is forwarded`);
  // kubectl writes a line for each connection, and would wait for a reader.
  child.stdout.resume();
  return {
    port,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
};
