import type { Micros } from "@conversation-export/domain";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW, REIGN } from "../redis/script.ts";

/** How long a process may write without renewing its lease. */
export const WRITER_LEASE_MS = 30_000;

/** One hash: `generation`, `reign`, `since`, `seen`, `settled`, and a field for each lease. */
const KEY = "conversation-export:writers";

/** A server that ran no script for this share of a lease was away: each process renews its own far more often. */
const AWAY_SHARE = 3;

/**
 * ARGV[1] of each script: length of a lease in ms.
 *
 * `since`: when this reign began to keep leases. It is set anew when the server was restarted,
 * emptied or promoted, since leases may be lost then. So is the generation: two servers must not tell the same one.
 *
 * `seen`: when a script ran last. While the server is away nobody can renew a lease, and nobody sees one run out, so
 * leases that ran then have the rest of their time afterwards, as they have when the clock is set. Once, until they
 * are renewed: a process that is gone never renews its own. Another reign may not know what the former one saw.
 *
 * A server that takes no writes still answers those who only look.
 */
const BEGIN = `${NOW}${REIGN}
local function leases()
  local found = {}
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 6) == 'lease:' then
      found[#found + 1] = {field = fields[i], text = fields[i + 1], state = cjson.decode(fields[i + 1])}
    end
  end
  return found
end
local micros = time[1] * 1000000 + time[2]
local seen = redis.call('HGET', KEYS[1], 'seen')
if redis.call('HGET', KEYS[1], 'reign') ~= reign then
  redis.pcall('HSET', KEYS[1], 'reign', reign, 'since', string.format('%.0f', now))
elseif seen and (now < tonumber(seen) or now - seen > ARGV[1] / ${AWAY_SHARE}) and not string.find(reign, 'hidden') then
  for _, lease in ipairs(leases()) do
    local state = lease.state
    -- Without a length: held by a process of an earlier version, which sees nothing and notes nothing.
    local isBack = now < tonumber(seen)
    if state.length and (isBack or not state.extended) and state.expires_at > tonumber(seen) then
      state.expires_at = math.min(state.expires_at + now - seen, now + state.length)
      state.extended = state.extended or not isBack
      redis.pcall('HSET', KEYS[1], lease.field, cjson.encode(state))
    end
  end
end
redis.pcall('HSET', KEYS[1], 'seen', string.format('%.0f', now))
local generation = redis.call('HGET', KEYS[1], 'generation')
if not generation then
  generation = string.format('%.0f', micros)
  redis.call('HSET', KEYS[1], 'generation', generation)
end
`;

/**
 * ARGV: length of a lease in ms, id, service, confirmed generation, oldest upload in µs or nothing, earliest upload in
 * µs. A lease that was not held begins at the largest instant that SETTLED has given out. The answer always tells of
 * that instant, since the answer to the first renewal may be lost.
 */
const RENEW = `${BEGIN}
local field = 'lease:' .. ARGV[2]
local former = redis.call('HGET', KEYS[1], field)
former = former and cjson.decode(former)
local settled = redis.call('HGET', KEYS[1], 'settled') or '0'
local from = ARGV[6]
local held_since = former and former.expires_at > now and former.held_since
if not held_since then
  held_since = string.format('%.0f', micros)
  if tonumber(settled) > tonumber(from) then from = settled end
end
redis.call('HSET', KEYS[1], field, cjson.encode({
  service = ARGV[3], expires_at = now + ARGV[1], confirmed = ARGV[4], oldest_upload = ARGV[5], upload_from = from,
  held_since = held_since, length = tonumber(ARGV[1])
}))
if tonumber(settled) > tonumber(from) then from = settled end
return {generation, held_since, from}
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
 * ARGV: length of a lease in ms, an instant in µs that was given out before. Answers 1 and the earliest
 * instant that any holder of a lease may still use, or 0 while that is not known.
 */
const SETTLED = `${BEGIN}
local earliest
local known = now - redis.call('HGET', KEYS[1], 'since') > tonumber(ARGV[1])
for _, lease in ipairs(leases()) do
  local from = lease.state.upload_from
  if lease.state.expires_at > now then
    if not from then
      known = false
    elseif not earliest or tonumber(from) < tonumber(earliest) then
      earliest = from
    end
  else
    -- What has run out once stays so when the clock is set back.
    redis.call('HDEL', KEYS[1], lease.field)
  end
end
local settled = redis.call('HGET', KEYS[1], 'settled') or '0'
if tonumber(ARGV[2]) > tonumber(settled) then settled = ARGV[2] end
if known and earliest and tonumber(earliest) > tonumber(settled) then settled = earliest end
redis.call('HSET', KEYS[1], 'settled', settled)
return {known and earliest and 1 or 0, earliest or '0'}
`;

const LIST = `${BEGIN}
local answer = {generation, tostring(now), redis.call('HGET', KEYS[1], 'since')}
for _, lease in ipairs(leases()) do
  if lease.state.expires_at > now then
    answer[#answer + 1] = string.sub(lease.field, 7)
    answer[#answer + 1] = lease.text
  else
    redis.call('HDEL', KEYS[1], lease.field)
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
  /** No batch that is in flight or begins later has an earlier instant of upload, while the lease is held. */
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
   * `heldSince`: the same at each renewal until the lease has run out. `uploadFrom`: where uploads begin when
   * `heldSince` is another one than before: later than the given one if what lies before has been given out as settled.
   */
  renew(
    state: LeaseState,
  ): Promise<{ readonly generation: number; readonly heldSince: Micros; readonly uploadFrom: Micros }>;
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
    const answer = (await askRedis(() => list(KEY, [leaseMs]))) as string[];
    const [generation, now, since, ...fields] = answer;
    const leases: WriterLease[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2)
      leases.push(leaseOf(fields[at] ?? "", fields[at + 1] ?? ""));
    return { generation: Number(generation), leases, complete: Number(now) - Number(since) > leaseMs };
  };

  return {
    generation: async () => (await listed()).generation,
    renew: async ({ id, service, confirmed, oldestUpload, uploadFrom }) => {
      const args = [leaseMs, id, service, confirmed, oldestUpload ?? "", uploadFrom];
      const [generation, heldSince, from] = (await askRedis(() => renew(KEY, args))) as string[];
      return { generation: Number(generation), heldSince: Number(heldSince), uploadFrom: Number(from) };
    },
    release: async (id) => void (await askRedis(() => release(KEY, [id]))),
    announce: async () => Number(await askRedis(() => announce(KEY, [leaseMs]))),
    list: listed,
    settledUntil: async (known) => {
      const [isKnown, earliest] = (await askRedis(() => settled(KEY, [leaseMs, known]))) as [number, string];
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
