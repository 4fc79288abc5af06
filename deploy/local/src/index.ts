export type { ClickhousePasswords, ClickhouseUser } from "./clickhouse.ts";
export { choosePorts } from "./ports.ts";
export { createSentinel } from "./redis.ts";
export type { Server } from "./server.ts";
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
