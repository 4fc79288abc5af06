import { createHash, randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type SmsTrigger, smsTriggerEvent, smsTriggerSchema } from "@conversation-export/domain";
import type { Claim, IdempotencyStore } from "@conversation-export/queue";
import { type Logger, ServiceError } from "@conversation-export/runtime";
import type { CampaignRow, CampaignStore } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { badRequest, duplicateResource, resourceMissing, unprocessable } from "./api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { checkBody, readJsonBody, requireNoQuery } from "./json-body.ts";
import { sendJson } from "./send-json.ts";
import { isUnsent, type TriggerPublisher } from "./sms-trigger-publisher.ts";

export type SmsTriggerDeps = {
  readonly campaigns: Pick<CampaignStore, "find">;
  readonly idempotency: IdempotencyStore;
  readonly publisher: Pick<TriggerPublisher, "publish">;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** For how long an answer about a campaign holds; unknown ones are asked for again after 2 s at most. */
  readonly campaignCacheMs?: number;
  /** For how long a request waits for the acknowledgement of its event. */
  readonly publishMs?: number;
  /** For how long a request waits for another one with its key. */
  readonly waitMs?: number;
};

type Claimed = Extract<Claim, { state: "claimed" }>;

const CAMPAIGN_CACHE_MS = 5_000;
const UNKNOWN_CACHE_MS = 2_000;
const MAX_CAMPAIGNS = 10_000;
const PUBLISH_MS = 6_000;
const WAIT_MS = 2_000;
const POLL_MS = 100;

/** The shape of the key in the header `Idempotency-Key`. */
export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** The key in the header, undefined when there is none. Throws `ApiError` 400 for one of another form. */
const readKey = (headers: IncomingMessage["headers"]): string | undefined => {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && IDEMPOTENCY_KEY.test(key)) return key;
  throw badRequest(["Idempotency-Key: must be 1 to 255 visible ASCII characters, given once"]);
};

const digest = (parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex");

/** Equal for bodies that say the same, whatever the order of their fields. */
const fingerprintOf = ({ campaign_key, language, recipient }: SmsTrigger): string => {
  const fields = Object.entries(recipient.meta_fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return digest([campaign_key, language, JSON.stringify(fields)]);
};

/** A UUID made of a digest (RFC 9562, version 8), so that a repetition names the same event. */
const uuidOf = (hex: string): string => {
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join("-");
};

const unavailable = (code: string, message: string): ServiceError =>
  new ServiceError(code, message, { retryable: true });

/** The value of the promise if it comes in time. What it does goes on all the same. */
const within = async <T>(promise: Promise<T>, ms: number): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(unavailable("bus_slow", "the event bus has not acknowledged in time")),
    ms,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** Asking the platform to start a conversation by SMS (section 4.5 of the specification). */
export const createSmsTrigger = (deps: SmsTriggerDeps): Endpoint => {
  const { idempotency, publisher, log, now } = deps;
  const cacheMs = deps.campaignCacheMs ?? CAMPAIGN_CACHE_MS;
  const publishMs = deps.publishMs ?? PUBLISH_MS;
  const waitMs = deps.waitMs ?? WAIT_MS;

  // fetch coalesces concurrent look-ups; values are wrapped since null is no value to the cache.
  const campaigns = new LRUCache<string, { campaign: CampaignRow | null }, readonly [string, string]>({
    max: MAX_CAMPAIGNS,
    ttl: cacheMs,
    ttlResolution: 0,
    ignoreFetchAbort: true,
    fetchMethod: async (_name, _stale, { options, context: [clientId, key] }) => {
      const campaign = await deps.campaigns.find(clientId, key);
      if (campaign === null || campaign.deleted) options.ttl = Math.min(cacheMs, UNKNOWN_CACHE_MS);
      return { campaign };
    },
  });

  const requireCampaign = async (clientId: string, trigger: SmsTrigger): Promise<void> => {
    const context = [clientId, trigger.campaign_key] as const;
    const { campaign } = await campaigns.forceFetch(JSON.stringify(context), { context });
    if (campaign === null || campaign.deleted) {
      throw resourceMissing(
        "The campaign does not exist",
        "campaign_key: no such campaign is registered for this client",
      );
    }
    const { languages } = campaign;
    const wanted = trigger.language.toLowerCase();
    if (languages.length > 0 && !languages.some((one) => one.toLowerCase() === wanted)) {
      throw unprocessable([`language: the campaign has only ${languages.join(", ")}`]);
    }
  };

  const publish = (clientId: string, id: string, trigger: SmsTrigger): Promise<void> =>
    publisher.publish(smsTriggerEvent({ id, clientId, trigger, requestedAt: now() * 1000 }));

  const publishUnclaimed = async (clientId: string, id: string, trigger: SmsTrigger): Promise<void> => {
    await requireCampaign(clientId, trigger);
    await publish(clientId, id, trigger);
  };

  /** Publishes under a claim, and settles the claim also when the caller has stopped waiting. */
  const publishClaimed = async (
    claim: Claimed & { readonly scope: string; readonly key: string },
    clientId: string,
    id: string,
    trigger: SmsTrigger,
  ): Promise<void> => {
    const { scope, key, token, fresh } = claim;
    const notSettled = (error: unknown): void =>
      log.warn({ err: error }, "an idempotency key is not settled");
    let begun = false;
    try {
      await requireCampaign(clientId, trigger);
      begun = true;
      await publish(clientId, id, trigger);
    } catch (error) {
      // Whoever had the key before may have an event on its way still: the key goes on standing for this body.
      const free = fresh && (!begun || isUnsent(error));
      await idempotency[free ? "release" : "abandon"](scope, key, token).catch(notSettled);
      throw error;
    }
    // The event is there: without the note a repetition publishes it again, under the same id.
    const noted = await idempotency.complete(scope, key, token, id).catch(notSettled);
    if (noted === false)
      log.warn({ id }, "an event was acknowledged after its idempotency key was taken over");
  };

  /** The id of the event of this key, published by this request or an earlier one. */
  const publishOnce = async (clientId: string, key: string, trigger: SmsTrigger): Promise<string> => {
    const scope = `sms_trigger:${clientId}`;
    const fingerprint = fingerprintOf(trigger);
    const deadline = performance.now() + waitMs;
    for (;;) {
      const claim = await idempotency.claim(scope, key, fingerprint);
      if (claim.state === "done") return claim.result;
      if (claim.state === "other") {
        throw duplicateResource("Idempotency-Key: was used with another body within the last 24 hours");
      }
      if (claim.state === "claimed") {
        const id = uuidOf(digest([clientId, key, fingerprint, String(claim.since)]));
        await within(publishClaimed({ ...claim, scope, key }, clientId, id, trigger), publishMs);
        return id;
      }
      if (performance.now() > deadline) {
        throw unavailable("idempotency_running", "an earlier request with this key is still running");
      }
      await sleep(POLL_MS);
    }
  };

  const serve = async ({ request, reply, client }: Call): Promise<void> => {
    requireNoQuery(request.raw.url ?? "");
    const key = readKey(request.headers);
    const trigger = checkBody(smsTriggerSchema, await readJsonBody(request.raw));
    let id: string;
    if (key === undefined) {
      id = randomUUID();
      await within(publishUnclaimed(client.clientId, id, trigger), publishMs);
    } else {
      id = await publishOnce(client.clientId, key, trigger);
    }
    sendJson(reply, 200, { id });
  };

  return {
    name: "sms_trigger",
    method: "POST",
    paths: ["/api/campaigns/sms/trigger"],
    scope: "campaigns",
    limit: "sms_trigger",
    slot: "body",
    serve,
  };
};
