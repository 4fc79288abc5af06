import { createIdempotencyStore, createRateLimiter, createRedis } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";

/** An order of the parent; all of it is done at the same time. */
export type RacerOrder =
  | {
      readonly do: "consume";
      readonly key: string;
      readonly windows: readonly { requests: number; seconds: number }[];
      readonly times: number;
    }
  | { readonly do: "claim"; readonly keys: readonly string[]; readonly fingerprint: string };

const [url = ""] = process.argv.slice(2);
const log = createLogger({ service: "racer", level: "error" });
const redis = createRedis({ url, log });
const limiter = createRateLimiter({ redis, log, answerWithinMs: 2_000 });
const store = createIdempotencyStore({ redis, ttlSeconds: 60, leaseMs: 30_000 });

const obey = (order: RacerOrder): Promise<readonly unknown[]> =>
  order.do === "consume"
    ? Promise.all(Array.from({ length: order.times }, () => limiter.consume(order.key, order.windows)))
    : Promise.all(order.keys.map((key) => store.claim("racer", key, order.fingerprint)));

process.on("message", (order: RacerOrder) => void obey(order).then((answers) => process.send?.(answers)));
process.on("disconnect", () => void redis.stop());
await redis.start();
process.send?.("ready");
