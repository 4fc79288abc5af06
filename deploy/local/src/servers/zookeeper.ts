import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../paths.ts";
import { createFolderServer, type FolderDeps, type Server } from "../process/server.ts";
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
  const java = ["-Xms128m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false"];
  return createFolderServer(deps, {
    name: "zookeeper",
    command: [
      "java",
      ...java,
      "-cp",
      join(jars, "*"),
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      config,
    ],
    startDeadlineMs: 60_000,
    stopDeadlineMs: 15_000,
    ready: (readLog) => Promise.resolve(readLog().includes("PrepRequestProcessor (sid:0) started")),
  });
}
