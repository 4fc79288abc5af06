import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { findProgram } from "../chart/helm.ts";

export type LocalPort = { readonly port: number; isServing(): boolean; stop(): Promise<void> };

const serve = async (args: readonly string[], line: RegExp): Promise<LocalPort> => {
  const child = spawn(findProgram("kubectl") ?? "kubectl", [...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  let port = 0;
  for await (const said of createInterface({ input: child.stdout })) {
    port = Number(line.exec(said)?.[1] ?? 0);
    if (port > 0) break;
  }
  if (port === 0) throw new Error(`kubectl ${args.join(" ")} serves no port`);
  // kubectl writes a line per connection and would wait for a reader.
  child.stdout.resume();
  return {
    port,
    isServing: () => child.exitCode === null && child.signalCode === null,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
};

export const forwardPort = (namespace: string, service: string): Promise<LocalPort> =>
  serve(
    ["port-forward", "--namespace", namespace, `service/${service}`, ":80"],
    /^Forwarding from 127\.0\.0\.1:(\d+)/,
  );

export const proxyApi = (): Promise<LocalPort> =>
  serve(["proxy", "--port=0"], /^Starting to serve on 127\.0\.0\.1:(\d+)/);
