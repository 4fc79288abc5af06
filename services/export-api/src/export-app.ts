import { LEGACY_VERSIONS, type LinkBounds, LIST_NAMES } from "@conversation-export/domain";
import type { Reader } from "@conversation-export/warehouse";
import type { FastifyInstance } from "fastify";
import { createAdmission } from "./admission/admission.ts";
import { createCallerOf } from "./admission/caller.ts";
import { type AppDeps, createApp } from "./http/app.ts";
import type { AuthThrottle } from "./admission/auth-throttle.ts";
import type { KnownKeys } from "./admission/known-keys.ts";
import { createAuthenticate } from "./admission/authenticate.ts";
import { createChanges } from "./envelopes/changes.ts";
import { createDataSubjectRequests, type DataSubjectRequestDeps } from "./operations/data-subject-request.ts";
import {
  createDataSubjectRequestList,
  type DataSubjectRequestListDeps,
} from "./operations/data-subject-request-list.ts";
import { createEndUsers } from "./envelopes/end-users.ts";
import { createExport } from "./envelopes/export.ts";
import { createLegacy } from "./envelopes/legacy.ts";
import { createListEndpoint } from "./envelopes/list-endpoint.ts";
import { LEGACY_LISTS, WINDOW_LISTS } from "./lists/lists.ts";
import type { SweepBuffers } from "./formats/buffer-sweep.ts";
import { createPageLinks } from "./envelopes/page-link.ts";
import { createNoteRepeats } from "./envelopes/repeated-requests.ts";
import type { RateLimit } from "./admission/rate-limit.ts";
import { createListAnswers } from "./formats/list-answers.ts";
import { createSendPage } from "./formats/send-page.ts";
import { createAddressOf } from "./http/service-address.ts";
import { registerDocument, registerEntrance, registerReference } from "./openapi/reference-page.ts";
import type { Slots } from "./admission/slots.ts";
import type { ClientBound } from "./admission/client-bound.ts";
import type { UsedKeys } from "./admission/used-keys.ts";
import { createSmsTrigger, type SmsTriggerDeps } from "./operations/sms-trigger.ts";
import type { ReadStable } from "./lists/stable-cache.ts";
import type { ReadWatermark } from "./lists/watermark.ts";

export type ExportAppDeps = Omit<AppDeps, "endpoints" | "admit" | "publicHost" | "callerOf"> & {
  readonly reader: Reader;
  readonly rateLimit: RateLimit;
  readonly authThrottle: AuthThrottle;
  readonly knownKeys: KnownKeys;
  readonly usedKeys: Pick<UsedKeys, "use">;
  readonly slots: Readonly<Record<"page" | "body", Slots>>;
  readonly bounds: Readonly<Record<"pages" | "streams", ClientBound>>;
  readonly watermark: ReadWatermark;
  readonly stable: ReadStable;
  readonly compliance: DataSubjectRequestDeps & Pick<DataSubjectRequestListDeps, "requests" | "deadlineMs">;
  readonly campaigns: Omit<SmsTriggerDeps, "log" | "now">;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly cursorSecret: string;
  readonly previousCursorSecret: string | undefined;
  readonly publicBaseUrl: string | undefined;
  readonly linkBounds: LinkBounds;
  readonly legacy: { readonly deprecation: Date | undefined; readonly sunset: Date | undefined };
  readonly keyCacheMs: number;
  readonly sweep: SweepBuffers;
  readonly reference: boolean;
};

export const createExportApp = (deps: ExportAppDeps): FastifyInstance => {
  const { reader, watermark, metrics, log, clock, now } = deps;
  const keys = createAuthenticate({
    reader,
    cacheMs: deps.keyCacheMs,
    clock,
    throttle: deps.authThrottle,
    known: deps.knownKeys,
    onLookup: (result) => metrics.keyLookups.inc({ result }),
  });
  const admit = createAdmission({ ...deps, ...keys, askAgainMs: deps.keyCacheMs });
  const linking = {
    secret: deps.cursorSecret,
    previousSecret: deps.previousCursorSecret,
    linkBounds: deps.linkBounds,
  };
  const answers = createListAnswers(createSendPage(deps));
  const addressOf = createAddressOf(deps.publicBaseUrl);
  const noteRepeats = createNoteRepeats({ linkBounds: deps.linkBounds, metrics, log, clock });
  const shared = { reader, answers, addressOf, watermark, noteRepeats };
  const exporting = { ...shared, links: createPageLinks({ ...linking, form: "v2" }) };
  const legacy = { ...shared, ...deps.legacy, links: createPageLinks({ ...linking, form: "legacy" }), now };
  const changing = { ...shared, ...linking, stable: deps.stable, now };
  const endpoint = createListEndpoint(shared);
  const endpoints = [
    ...WINDOW_LISTS.map((list) => endpoint(createExport(exporting, list))),
    ...LIST_NAMES.map((list) => endpoint(createChanges(changing, list))),
    endpoint(createEndUsers(shared)),
    ...createDataSubjectRequests(deps.compliance),
    ...createDataSubjectRequestList({ ...deps.compliance, ...linking, addressOf }),
    createSmsTrigger({ ...deps.campaigns, log, now }),
    ...LEGACY_VERSIONS.flatMap((version) =>
      LEGACY_LISTS.map((list) => endpoint(createLegacy(legacy, list, version))),
    ),
  ];
  const app = createApp({
    ...deps,
    endpoints,
    admit,
    publicHost: deps.publicBaseUrl === undefined ? undefined : new URL(deps.publicBaseUrl).host,
    callerOf: createCallerOf(deps.cursorSecret),
  });
  registerDocument(app, { endpoints, publicBaseUrl: deps.publicBaseUrl });
  registerEntrance(app, deps);
  if (deps.reference) registerReference(app);
  return app;
};
