import type { Micros } from "@conversation-export/domain";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW, REIGN } from "../redis/script.ts";

/** How long a process may write without renewing its lease. */
export const WRITER_LEASE_MS = 30_000;

/** One hash: `generation`, `reign`, `since`, `settled`, and a field for each lease. */
const KEY = "conversation-export:writers";

/**
 * `since`: when this reign began to keep leases. It is set anew when the server was restarted,
 * emptied or promoted, since leases may be lost then. So is the generation: two servers must not tell the same one.
 */
const BEGIN = `${NOW}${REIGN}
local micros = time[1] * 1000000 + time[2]
if redis.call('HGET', KEYS[1], 'reign') ~= reign then
  redis.call('HSET', KEYS[1], 'reign', reign, 'since', string.format('%.0f', now))
end
local generation = redis.call('HGET', KEYS[1], 'generation')
if not generation then
  generation = string.format('%.0f', micros)
  redis.call('HSET', KEYS[1], 'generation', generation)
end
`;

/**
 * ARGV: id, service, length of the lease in ms, confirmed generation, oldest upload in µs or nothing,
 * earliest upload in µs. A lease that was not kept begins at the largest instant that SETTLED has given out.
 */
const RENEW = `${BEGIN}
local field = 'lease:' .. ARGV[1]
local former = redis.call('HGET', KEYS[1], field)
local kept = former and cjson.decode(former).expires_at > now
local settled = redis.call('HGET', KEYS[1], 'settled') or '0'
local from = ARGV[6]
if not kept and tonumber(settled) > tonumber(from) then from = settled end
redis.call('HSET', KEYS[1], field, cjson.encode({
  service = ARGV[2], expires_at = now + ARGV[3], confirmed = ARGV[4], oldest_upload = ARGV[5], upload_from = from
}))
return {generation, kept and 1 or 0, from}
`;

/** ARGV: id. */
const RELEASE = "return redis.call('HDEL', KEYS[1], 'lease:' .. ARGV[1])";

/** Generations follow the clock, so that a server that lost the last one still gives a larger one. */
const ANNOUNCE = `${BEGIN}
local following = string.format('%.0f', math.max(tonumber(generation) + 1, micros))
redis.call('HSET', KEYS[1], 'generation', following)
return following
`;

/**
 * ARGV: an instant in µs that was given out before, length of a lease in ms. Answers 1 and the earliest
 * instant that any holder of a lease may still use, or 0 while that is not known.
 */
const SETTLED = `${BEGIN}
local earliest
local known = now - redis.call('HGET', KEYS[1], 'since') > tonumber(ARGV[2])
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 6) == 'lease:' then
    local lease = cjson.decode(fields[i + 1])
    if lease.expires_at > now then
      if not lease.upload_from then
        known = false
      elseif not earliest or tonumber(lease.upload_from) < tonumber(earliest) then
        earliest = lease.upload_from
      end
    end
  end
end
local settled = redis.call('HGET', KEYS[1], 'settled') or '0'
if tonumber(ARGV[1]) > tonumber(settled) then settled = ARGV[1] end
if known and earliest and tonumber(earliest) > tonumber(settled) then settled = earliest end
redis.call('HSET', KEYS[1], 'settled', settled)
return {known and earliest and 1 or 0, earliest or '0'}
`;

const LIST = `${BEGIN}
local answer = {generation, tostring(now), redis.call('HGET', KEYS[1], 'since')}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 6) == 'lease:' then
    if cjson.decode(fields[i + 1]).expires_at > now then
      answer[#answer + 1] = string.sub(fields[i], 7)
      answer[#answer + 1] = fields[i + 1]
    else
      redis.call('HDEL', KEYS[1], fields[i])
    end
  end
end
return answer
`;

/** A process that may write records now. */
export type WriterLease = {
  readonly id: string;
  readonly service: string;
  /** It follows all suppressions up to this generation: it writes no record that they drop. */
  readonly confirmed: number;
  /** The oldest instant of upload of a batch in flight; null when there is none. */
  readonly oldestUpload: Micros | null;
};

export type WriterList = {
  readonly generation: number;
  readonly leases: readonly WriterLease[];
  /** false: the server has kept leases for less than the length of a lease, so some may be missing. */
  readonly complete: boolean;
};

/** Reported by a process when it renews its lease. */
export type LeaseState = WriterLease & {
  /** No batch that is in flight or begins later has an earlier instant of upload, while the lease is kept. */
  readonly uploadFrom: Micros;
};

/**
 * Which processes may write, and up to which generation of suppressions they have followed. Everything throws
 * ServiceError `redis_unavailable`.
 */
export type WriterLeases = {
  /** The generation of suppressions that writers are to follow. */
  generation(): Promise<number>;
  /**
   * `kept`: the lease had not expired. `uploadFrom`: the one of the lease, which is later than the given one
   * when the lease was not kept and what lies before has been given out as settled.
   */
  renew(
    state: LeaseState,
  ): Promise<{ readonly generation: number; readonly kept: boolean; readonly uploadFrom: Micros }>;
  release(id: string): Promise<void>;
  /** Tells all writers to read the suppressions again; gives the generation that they are to confirm. */
  announce(): Promise<number>;
  /** The leases that have not expired. */
  list(): Promise<WriterList>;
  /**
   * The instant before which no lease, of now or later, has an instant of upload; null while leases may be
   * missing or there is none. INSERTs of leases that have expired may still run.
   *
   * @param known an instant that was given out before: leases that begin later do not begin before it
   */
  settledUntil(known: Micros): Promise<Micros | null>;
};

/** @param deps.leaseMs the same for all processes */
export const createWriterLeases = (deps: {
  readonly redis: Redis;
  readonly leaseMs?: number;
}): WriterLeases => {
  const leaseMs = deps.leaseMs ?? WRITER_LEASE_MS;
  const client = clientOf(deps.redis);
  const renew = createScript(client, RENEW);
  const release = createScript(client, RELEASE);
  const announce = createScript(client, ANNOUNCE);
  const list = createScript(client, LIST);
  const settled = createScript(client, SETTLED);

  const listed = async (): Promise<WriterList> => {
    const answer = (await askRedis(() => list(KEY, []))) as string[];
    const [generation, now, since, ...fields] = answer;
    const leases: WriterLease[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2)
      leases.push(leaseOf(fields[at] ?? "", fields[at + 1] ?? ""));
    return { generation: Number(generation), leases, complete: Number(now) - Number(since) > leaseMs };
  };

  return {
    generation: async () => (await listed()).generation,
    renew: async ({ id, service, confirmed, oldestUpload, uploadFrom }) => {
      const args = [id, service, leaseMs, confirmed, oldestUpload ?? "", uploadFrom];
      const answer = (await askRedis(() => renew(KEY, args))) as [string, number, string];
      const [generation, kept, from] = answer;
      return { generation: Number(generation), kept: kept === 1, uploadFrom: Number(from) };
    },
    release: async (id) => void (await askRedis(() => release(KEY, [id]))),
    announce: async () => Number(await askRedis(() => announce(KEY, []))),
    list: listed,
    settledUntil: async (known) => {
      const [isKnown, earliest] = (await askRedis(() => settled(KEY, [known, leaseMs]))) as [number, string];
      return isKnown === 1 ? Number(earliest) : null;
    },
  };
};

const leaseOf = (id: string, text: string): WriterLease => {
  const stored = JSON.parse(text) as { service: string; confirmed: string; oldest_upload: string };
  return {
    id,
    service: stored.service,
    confirmed: Number(stored.confirmed),
    oldestUpload: stored.oldest_upload === "" ? null : Number(stored.oldest_upload),
  };
};
