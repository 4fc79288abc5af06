import { createIdempotencyStore, createRedis } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";

/** An order of the parent; all keys at the same time. */
export type RacerOrder = { readonly keys: readonly string[]; readonly work: string };

const [url = ""] = process.argv.slice(2);
const log = createLogger({ service: "racer", level: "error" });
const redis = createRedis({ url, log });
const store = createIdempotencyStore({ redis, secrets: ["a secret"], ttlSeconds: 60, leaseMs: 30_000 });

const obey = ({ keys, work }: RacerOrder): Promise<readonly unknown[]> =>
  Promise.all(keys.map((key) => store.claim("racer", key, work)));

process.on("message", (order: RacerOrder) => void obey(order).then((answers) => process.send?.(answers)));
process.on("disconnect", () => void redis.stop());
await redis.start();
process.send?.("ready");
