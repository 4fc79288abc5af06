import { createHash } from "node:crypto";
import type { Redis as Client } from "ioredis";

/** `now` in ms, `time` in seconds and µs. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/** Changes on restart (`run_id`) and promotion (`master_replid`), which may lose the last writes. */
export const SERVER_RUN = `
local function field(section, pattern)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, pattern) or 'hidden'
end
local run = field('server', 'run_id:(%w+)') .. ':' .. field('replication', 'master_replid:(%w+)')
`;

export type Script = (
  keys: string | readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

export const createScript = (client: Client, lua: string): Script => {
  const digest = createHash("sha1").update(lua).digest("hex");
  return async (keys, args) => {
    const names = [keys].flat();
    try {
      return await client.evalsha(digest, names.length, ...names, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return client.eval(lua, names.length, ...names, ...args);
    }
  };
};
