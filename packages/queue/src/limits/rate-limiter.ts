import type { RateWindow } from "@conversation-export/domain";
import type { Logger } from "@conversation-export/runtime";
import { type Allowance, describeAllowance } from "./allowance.ts";
import { createCircuitBreaker } from "./circuit-breaker.ts";
import { createMemoryLimiter } from "./memory-limiter.ts";
import { clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW } from "../redis/script.ts";

const KEY_PREFIX = "conversation-export:rate:";
const ANSWER_WITHIN_MS = 100;
const MAX_KEYS = 10_000;

/** KEYS[1]: count and end (ms) of each window; ARGV: requests and seconds of each. */
const COUNT = `${NOW}
local fields = {}
for i = 2, #ARGV, 2 do
  fields[#fields + 1] = 'n' .. ARGV[i]
  fields[#fields + 1] = 'e' .. ARGV[i]
end
local found = redis.call('HMGET', KEYS[1], unpack(fields))
local answer = {now, 1}
for i = 1, #ARGV, 2 do
  local count = tonumber(found[i] or 0)
  local stop = tonumber(found[i + 1] or 0)
  local whole = now + ARGV[i + 1] * 1000
  if stop <= now then
    count = 0
    stop = whole
  end
  if stop > whole then stop = whole end
  if count >= tonumber(ARGV[i]) then answer[2] = 0 end
  answer[#answer + 1] = count
  answer[#answer + 1] = stop
end
if answer[2] == 1 then
  local changes = {}
  local last = 0
  for i = 1, #fields do
    if i % 2 == 1 then answer[i + 2] = answer[i + 2] + 1 end
    changes[#changes + 1] = fields[i]
    changes[#changes + 1] = string.format('%.0f', answer[i + 2])
    if i % 2 == 0 and answer[i + 2] > last then last = answer[i + 2] end
  end
  redis.call('HSET', KEYS[1], unpack(changes))
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
end
return answer
`;

export type RateLimiter = {
  /** Never rejects; `windows` must not be empty, lengths unique. */
  consume(key: string, windows: readonly RateWindow[]): Promise<Allowance>;
};

/** Without an answer in time this process counts by itself (docs/decisions/0009). */
export const createRateLimiter = (deps: {
  readonly redis: Redis;
  readonly log: Logger;
  readonly onUnshared?: () => void;
  readonly answerWithinMs?: number;
}): RateLimiter => {
  const { redis, log, onUnshared, answerWithinMs = ANSWER_WITHIN_MS } = deps;
  const client = clientOf(redis);
  const count = createScript(client, COUNT);
  const memory = createMemoryLimiter({ maxKeys: MAX_KEYS });
  const breaker = createCircuitBreaker({
    isConnected: () => client.status === "ready",
    answerWithinMs,
    onAway: (error) =>
      log.warn(
        { error: String(error) },
        "counting rate limits in Redis failed, this process counts by itself",
      ),
    onBack: () => log.info("rate limits are counted in Redis again"),
  });

  const consumeShared = async (key: string, windows: readonly RateWindow[]): Promise<Allowance> => {
    const args = windows.flatMap(({ requests, seconds }) => [requests, seconds]);
    const answer = (await count(KEY_PREFIX + key, args)) as number[];
    const [time = 0, allowed, ...numbers] = answer;
    const counts = windows.map((_, index) => ({
      count: numbers[2 * index] ?? 0,
      end: numbers[2 * index + 1] ?? 0,
    }));
    return describeAllowance(windows, counts, { allowed: allowed === 1, shared: true, now: time });
  };

  return {
    consume: async (key, windows) => {
      const shared = await breaker.ask(() => consumeShared(key, windows));
      if (shared !== undefined) return shared;
      onUnshared?.();
      return memory.consume(key, windows);
    },
  };
};
