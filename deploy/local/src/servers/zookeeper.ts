import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../paths.ts";
import { readFrom } from "../process/log-tail.ts";
import { createServer, type FolderDeps, type Server } from "../process/server.ts";
import { fetchJars } from "./maven.ts";

const version = "3.9.5";

export type ZookeeperDeps = FolderDeps & {
  readonly port: number;
  readonly log: (line: string) => void;
};

/** In place of ClickHouse Keeper. */
export async function createZookeeper(deps: ZookeeperDeps): Promise<Server> {
  const { folder, port, env } = deps;
  const pom = join(packageFolder, "zookeeper", "pom.xml");
  const jars = await fetchJars(`zookeeper-${version}`, pom, env, deps.log);
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "zoo.cfg");
  writeFileSync(
    config,
    `dataDir=${join(folder, "data")}\nclientPort=${port}\nclientPortAddress=127.0.0.1\ntickTime=500\n`,
  );
  const logPath = join(folder, "server.log");
  const java = ["-Xms128m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false"];
  return createServer({
    name: "zookeeper",
    tied: {
      command: [
        "java",
        ...java,
        "-cp",
        join(jars, "*"),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        config,
      ],
      cwd: folder,
      env,
      logPath,
    },
    identityPath: join(folder, "server.identity"),
    startDeadlineMs: 60_000,
    stopDeadlineMs: 15_000,
    ready: (logFrom) =>
      Promise.resolve(readFrom(logPath, logFrom).includes("PrepRequestProcessor (sid:0) started")),
    onUnexpectedEnd: deps.onUnexpectedEnd,
  });
}
