import type { Logger } from "@conversation-export/runtime";
import type { Reader } from "@conversation-export/warehouse";
import type { FastifyInstance } from "fastify";
import { createAdmission } from "./admission.ts";
import { createApp } from "./app.ts";
import type { AuthThrottle } from "./auth-throttle.ts";
import { createAuthenticate } from "./authenticate.ts";
import { createCursorSigner } from "./cursor.ts";
import { createDataSubjectRequests, type DataSubjectRequestDeps } from "./data-subject-request.ts";
import { createEndUsers } from "./end-users.ts";
import { createExportEndpoints } from "./export-endpoints.ts";
import type { ExportMetrics } from "./export-metrics.ts";
import { createLegacyEndpoints } from "./legacy-endpoints.ts";
import type { LinkBounds } from "./next-page.ts";
import { createPageLinks } from "./page-links.ts";
import type { RateLimit } from "./rate-limit.ts";
import { createSendPage } from "./send-page.ts";
import { createAddressOf } from "./service-address.ts";
import { registerReference } from "./reference-page.ts";
import type { Slots } from "./slots.ts";
import { createSmsTrigger, type SmsTriggerDeps } from "./sms-trigger.ts";
import type { ReadWatermark } from "./watermark.ts";

export type ExportAppDeps = {
  readonly reader: Reader;
  readonly rateLimit: RateLimit;
  readonly authThrottle: AuthThrottle;
  readonly slots: Readonly<Record<"page" | "body", Slots>>;
  readonly watermark: ReadWatermark;
  readonly compliance: DataSubjectRequestDeps;
  readonly campaigns: Omit<SmsTriggerDeps, "log" | "now">;
  readonly log: Logger;
  readonly metrics: ExportMetrics;
  /** Milliseconds that never run backwards. */
  readonly clock: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly cursorSecret: string;
  readonly previousCursorSecret?: string | undefined;
  readonly publicBaseUrl?: string | undefined;
  readonly trustedProxies: readonly string[];
  readonly linkBounds: LinkBounds;
  /** When the versions before v2 were deprecated, and when they go. */
  readonly legacy: { readonly deprecation: Date | undefined; readonly sunset: Date | undefined };
  readonly keyCacheMs: number;
  readonly idleMs: number;
  readonly maxEventLoopDelayMs: number;
};

/** The whole interface over what it reads from and writes to. */
export const createExportApp = (deps: ExportAppDeps): FastifyInstance => {
  const { reader, watermark, linkBounds, metrics, log, clock, now } = deps;
  const authenticate = createAuthenticate({
    reader,
    cacheMs: deps.keyCacheMs,
    clock,
    throttle: deps.authThrottle,
    onLookup: (result) => metrics.keyLookups.inc({ result }),
  });
  const admit = createAdmission({ authenticate, rateLimit: deps.rateLimit, slots: deps.slots, metrics });
  const cursors = createCursorSigner({
    secret: deps.cursorSecret,
    previousSecret: deps.previousCursorSecret,
  });
  const links = createPageLinks({ cursors, linkBounds });
  const sendPage = createSendPage({ metrics, log, clock, idleMs: deps.idleMs });
  const addressOf = createAddressOf(deps.publicBaseUrl);
  const shared = { reader, sendPage, addressOf, watermark };
  const app = createApp({
    endpoints: [
      ...createExportEndpoints({ ...shared, links }),
      createEndUsers(shared),
      ...createDataSubjectRequests(deps.compliance),
      createSmsTrigger({ ...deps.campaigns, log, now }),
      ...createLegacyEndpoints({ ...shared, ...deps.legacy, cursors, linkBounds, now }),
    ],
    admit,
    log,
    metrics,
    clock,
    trustedProxies: deps.trustedProxies,
    maxEventLoopDelayMs: deps.maxEventLoopDelayMs,
  });
  registerReference(app, deps);
  return app;
};
