import { readFileSync } from "node:fs";
import { join } from "node:path";
import { choosePorts, createKafka, type Server } from "@conversation-export/local-stack";

/** The controller holds no topics, so every broker may die. */
export type KafkaCluster = {
  readonly brokers: ReadonlyMap<number, Server>;
  readonly addresses: readonly string[];
  kill(): Promise<void>;
};

export const clusterIdOf = (folder: string): string => {
  const id = /^cluster\.id=(.+)$/m.exec(readFileSync(join(folder, "data/meta.properties"), "utf8"))?.[1];
  if (id === undefined) throw new Error(`${folder} does not say the id of the cluster`);
  return id;
};

export const startKafkaCluster = async (
  dir: string,
  { brokers: count, properties }: { brokers: number; properties: Readonly<Record<string, string>> },
): Promise<KafkaCluster> => {
  const nodeIds = Array.from({ length: count }, (_, index) => index + 2);
  const { controller: controllerPort, unused } = await choosePorts({
    names: ["controller", "unused"],
    fixed: {},
  });
  const ports = await choosePorts({ names: nodeIds.map(String), fixed: {} });
  const common = { controllerPort, env: process.env, log: () => {}, onUnexpectedEnd: () => {} };
  const at = `CONTROLLER://127.0.0.1:${controllerPort}`;
  const alone = { "process.roles": "controller", listeners: at, "advertised.listeners": at };
  const controller = await createKafka({
    ...common,
    folder: join(dir, "controller"),
    port: unused,
    listeners: { ports: {}, properties: { ...properties, ...alone } },
  });
  await controller.start();
  const id = clusterIdOf(join(dir, "controller"));
  const servers = await Promise.all(
    nodeIds.map((nodeId) =>
      createKafka({
        ...common,
        folder: join(dir, `broker-${nodeId}`),
        port: ports[String(nodeId)] ?? 0,
        listeners: { ports: {}, properties },
        joins: { id, nodeId },
      }),
    ),
  );
  await Promise.all(servers.map((server) => server.start()));
  return {
    brokers: new Map(nodeIds.map((nodeId, index) => [nodeId, servers[index] as Server])),
    addresses: nodeIds.map((nodeId) => `127.0.0.1:${ports[String(nodeId)]}`),
    kill: async () => {
      await Promise.all([controller, ...servers].map((server) => server.kill()));
    },
  };
};
