import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type SmsTrigger, smsTriggerEvent, smsTriggerSchema } from "@conversation-export/domain";
import type { Claim, IdempotencyStore } from "@conversation-export/queue";
import { type Logger, ServiceError, within } from "@conversation-export/runtime";
import type { CampaignRow, CampaignStore } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { badRequest, duplicateResource, resourceMissing, unprocessable } from "../http/api-error.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import type { Description } from "../openapi/description.ts";
import { checkBody, readJsonBody, requireNoQuery, sendJson } from "../http/json-body.ts";
import { isUnsent, type TriggerPublisher } from "./sms-trigger-publisher.ts";

export type SmsTriggerDeps = {
  readonly campaigns: Pick<CampaignStore, "find">;
  readonly idempotency: IdempotencyStore;
  readonly publisher: Pick<TriggerPublisher, "publish">;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** At most 2 s for an unknown one. */
  readonly campaignCacheMs?: number;
  readonly publishMs?: number;
  /** For an earlier request with the same key. */
  readonly waitMs?: number;
};

type Claimed = Extract<Claim, { state: "claimed" }>;

const CAMPAIGN_CACHE_MS = 5_000;
const UNKNOWN_CACHE_MS = 2_000;
const MAX_CAMPAIGNS = 10_000;
const PUBLISH_MS = 6_000;
const WAIT_MS = 2_000;
const POLL_MS = 100;

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

const description: Description = {
  operationId: "triggerSms",
  summary: "Start a conversation by SMS",
  tag: "Campaigns",
  text:
    "Asks the platform to send the first message of a campaign to one recipient. The answer comes when the request is " +
    "safe; the platform sends later.",
  requestParams: {
    header: z.object({
      "Idempotency-Key": z
        .string()
        .regex(IDEMPOTENCY_KEY)
        .optional()
        .meta({
          description: "The same request with the same key within 24 hours is done once",
          examples: ["order-4711-shipped"],
        }),
    }),
  },
  requestBody: {
    required: true,
    content: {
      "application/json": {
        schema: smsTriggerSchema.meta({
          id: "SmsTrigger",
          examples: [
            {
              campaign_key: "order-shipped",
              language: "en-US",
              recipient: { meta_fields: { phone_number: "+15551234567", order: 4711 } },
            },
          ],
        }),
      },
    },
  },
  success: {
    description: "Safe on the event bus",
    content: {
      "application/json": {
        schema: z.object({
          id: z.string().describe("The id of the event; a repeated request gets the same"),
        }),
        example: { id: "7d0f1c9e-52b4-4a61-9e0d-3c5b7a9f1e24" },
      },
    },
  },
  errors: ["DuplicateResource"],
};

/** @throws ApiError 400 */
const readKey = (headers: IncomingMessage["headers"]): string | undefined => {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && IDEMPOTENCY_KEY.test(key)) return key;
  throw badRequest(["Idempotency-Key: must be 1 to 255 visible ASCII characters, given once"]);
};

/** In any order of fields. */
const workOf = ({ campaign_key, language, recipient }: SmsTrigger): string => {
  const fields = Object.entries(recipient.meta_fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([campaign_key, language, fields]);
};

const unavailable = (code: string, message: string): ServiceError =>
  new ServiceError(code, message, { retryable: true });

const notAcknowledged = (): never => {
  throw unavailable("bus_slow", "the event bus has not acknowledged in time");
};

/** Specification, section 4.5. */
export const createSmsTrigger = (deps: SmsTriggerDeps): Endpoint => {
  const { idempotency, publisher, log, now } = deps;
  const cacheMs = deps.campaignCacheMs ?? CAMPAIGN_CACHE_MS;
  const publishMs = deps.publishMs ?? PUBLISH_MS;
  const waitMs = deps.waitMs ?? WAIT_MS;

  // Wrapped, because the cache holds no null.
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

  /** Settles the claim even if the caller has stopped waiting. */
  const publishClaimed = async (
    claim: Claimed & { readonly scope: string; readonly key: string },
    clientId: string,
    trigger: SmsTrigger,
  ): Promise<void> => {
    const { scope, key, token, fresh, id } = claim;
    const notSettled = (error: unknown): void =>
      log.warn({ err: error }, "storing the outcome of an idempotency key failed");
    let begun = false;
    try {
      await requireCampaign(clientId, trigger);
      begun = true;
      await publish(clientId, id, trigger);
    } catch (error) {
      // It may have been sent: the key stays bound to the body.
      const free = fresh && (!begun || isUnsent(error));
      await idempotency[free ? "release" : "abandon"](scope, key, token).catch(notSettled);
      throw error;
    }
    // If this fails, a repeat publishes again, with the same id.
    const noted = await idempotency.complete(scope, key, token, id).catch(notSettled);
    if (noted === false)
      log.warn({ id }, "an event was acknowledged after its idempotency key was taken over");
  };

  const publishOnce = async (clientId: string, key: string, trigger: SmsTrigger): Promise<string> => {
    const scope = `sms_trigger:${clientId}`;
    const work = workOf(trigger);
    const deadline = performance.now() + waitMs;
    for (;;) {
      const claim = await idempotency.claim(scope, key, work);
      if (claim.state === "done") return claim.result;
      if (claim.state === "other") {
        throw duplicateResource("Idempotency-Key: was used with another body within the last 24 hours");
      }
      if (claim.state === "claimed") {
        await within(publishClaimed({ ...claim, scope, key }, clientId, trigger), publishMs, notAcknowledged);
        return claim.id;
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
      await within(publishUnclaimed(client.clientId, id, trigger), publishMs, notAcknowledged);
    } else {
      id = await publishOnce(client.clientId, key, trigger);
    }
    sendJson(reply, 200, { id });
  };

  return {
    method: "POST",
    paths: ["/api/campaigns/sms/trigger"],
    scope: "campaigns",
    limit: "sms_trigger",
    slot: "body",
    description,
    serve,
  };
};
