export type { ClickhousePasswords, ClickhouseUser } from "./servers/clickhouse.ts";
export { type Ops, prepareSystem } from "./prepare-system.ts";
export { serviceEnvironment, services } from "./supervise/services.ts";
export { choosePorts, takePort } from "./process/ports.ts";
export { createKafka } from "./servers/kafka.ts";
export { createRedis as createRedisServer, createSentinel } from "./servers/redis.ts";
export type { Server } from "./process/server.ts";
export { spawnTied, tied } from "./process/tied-process.ts";
export {
  type ClickhouseServer,
  clusterName,
  type KafkaServer,
  type RedisServer,
  type ServerName,
  type Stack,
  type StackOptions,
  type StackPorts,
  startStack,
} from "./stack.ts";
export { isStopped } from "./process/process-identity.ts";
