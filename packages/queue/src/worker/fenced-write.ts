import type { Redis as Client } from "ioredis";
import { createScript } from "../redis/script.ts";

/** ARGV: token, field, value. */
const WRITE = `
if redis.call('GET', KEYS[1] .. ':lock') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 1
`;

/** false: `token` has lost the job's lock. */
export type FencedWrite = (
  jobKey: string,
  token: string,
  field: "data" | "progress",
  value: unknown,
) => Promise<boolean>;

export const createFencedWrite = (client: Client): FencedWrite => {
  const write = createScript(client, WRITE);
  return async (jobKey, token, field, value) =>
    (await write(jobKey, [token, field, JSON.stringify(value)])) === 1;
};
