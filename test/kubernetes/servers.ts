import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { choosePorts, type Stack, startStack } from "@conversation-export/local-stack";
import type { Cluster } from "./cluster.ts";

/** Servers of this machine, which pods reach under the names and ports of Services. */
export type Servers = {
  readonly stack: Stack;
  readonly ports: Readonly<Record<ServiceName, number>>;
  serve(cluster: Cluster, namespace: string): Promise<void>;
  stop(): Promise<void>;
};

const SERVICES = { kafka: 9092, clickhouse: 8123, redis: 6379 } as const;
type ServiceName = keyof typeof SERVICES;

/** This machine's address on the way to another; sends nothing. */
const addressTowards = async (address: string): Promise<string> => {
  const socket = createSocket("udp4");
  socket.connect(9, address);
  await once(socket, "connect");
  const own = socket.address().address;
  socket.close();
  return own;
};

/** Nodes of kind, k3s and minikube are on this machine or beside it. */
export const findHost = async ({ kubectl }: Cluster): Promise<string> => {
  const path = '{.items[0].status.addresses[?(@.type=="InternalIP")].address}';
  const node = (await kubectl(["get", "nodes", `--output=jsonpath=${path}`])).split(" ")[0] ?? "";
  return addressTowards(node);
};

const pass = async (host: string, target: number): Promise<Server> => {
  const server = createServer((socket) => {
    const inner = connect({ host: "127.0.0.1", port: target });
    for (const [one, other] of [
      [socket, inner],
      [inner, socket],
    ] as const) {
      one.setNoDelay(true);
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
    socket.pipe(inner).pipe(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  return server;
};

const serviceAt = (name: string, port: number, host: string, target: number): unknown[] => [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ name: "tcp", port, targetPort: target }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${name}-outside`, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: [{ name: "tcp", port: target, protocol: "TCP" }],
    endpoints: [{ addresses: [host], conditions: { ready: true } }],
  },
];

export const startServers = async (dir: string, host: string): Promise<Servers> => {
  const { kafka, kafkaController, pods } = await choosePorts({
    names: ["kafka", "kafkaController", "pods"],
    fixed: {},
  });
  const at = (port: number): string => `127.0.0.1:${port}`;
  const stack = await startStack({
    dir,
    ports: { kafka, kafkaController },
    kafkaListeners: {
      ports: {},
      properties: {
        listeners: `PLAINTEXT://${at(kafka)},CONTROLLER://${at(kafkaController)},PODS://${at(pods)}`,
        "advertised.listeners": `PLAINTEXT://${at(kafka)},PODS://kafka:${SERVICES.kafka}`,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PODS:PLAINTEXT",
      },
    },
  });
  const targets = {
    kafka: pods,
    clickhouse: stack.clickhouse.port,
    redis: Number(new URL(stack.redis.url).port),
  };
  const names = Object.keys(SERVICES) as ServiceName[];
  const listeners = await Promise.all(
    names.map(async (name) => ({ name, listener: await pass(host, targets[name]) })),
  );
  const ports = Object.fromEntries(
    listeners.map(({ name, listener }) => [name, (listener.address() as AddressInfo).port]),
  ) as Record<ServiceName, number>;
  return {
    stack,
    ports,
    serve: async ({ kubectl }, namespace) => {
      const items = names.flatMap((name) => serviceAt(name, SERVICES[name], host, ports[name]));
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      await kubectl(["apply", "--namespace", namespace, "--filename=-"], list);
    },
    stop: async () => {
      for (const { listener } of listeners) listener.close();
      await stack.kill();
    },
  };
};
