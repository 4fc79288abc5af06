import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import Negotiator from "negotiator";
import { createOpenApi } from "./openapi.ts";
import { API_PREFIX } from "./service-address.ts";

const DOCUMENT = `${API_PREFIX}/openapi.json`;
const PAGE = `${API_PREFIX}/reference`;
const SCRIPT = `${PAGE}/scalar.js`;

const HTML_TYPE = "text/html; charset=utf-8";
const SCRIPT_TYPE = "text/javascript; charset=utf-8";

type Asset = { readonly bytes: Buffer; readonly zipped: Buffer; readonly tag: string };
type Page = { readonly html: Asset; readonly script: Asset; readonly policy: string };

const toAsset = async (bytes: Buffer): Promise<Asset> => ({
  bytes,
  zipped: await promisify(gzip)(bytes),
  // Weak, since it stands for both codings.
  tag: `W/"${createHash("sha256").update(bytes).digest("base64url")}"`,
});

/** What the page shows; everything that would ask another host is off. */
const PAGE_OPTIONS = {
  pageTitle: "Conversation export: reference",
  // From the page's own address, so that it also works behind a proxy that adds to the path.
  sources: [{ url: "openapi.json", title: "Conversation export" }],
  cdn: "reference/scalar.js",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: "bearer" },
} as const;

/** Only what this service serves itself; the one inline script is known by its digest. */
const policyFor = (html: string): string => {
  const inline = [...html.matchAll(/<script[^>]*>([^]*?)<\/script>/g)]
    .map(([, code = ""]) => code)
    .filter((code) => code !== "")
    .map((code) => `'sha256-${createHash("sha256").update(code).digest("base64")}'`);
  return [
    "default-src 'none'",
    `script-src ${["'self'", ...inline].join(" ")}`,
    // Styles are put into the page by the script.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
};

/** Takes page and script out of the package, which only offers them as a plugin with routes of its own. */
const makePage = async (): Promise<Page> => {
  const { default: scalar } = await import("@scalar/fastify-api-reference");
  const inner = Fastify({ logger: false });
  await inner.register(scalar, { routePrefix: "/", configuration: PAGE_OPTIONS });
  const [page, script] = await Promise.all([inner.inject("/"), inner.inject("/js/scalar.js")]);
  await inner.close();
  if (page.statusCode !== 200 || script.statusCode !== 200)
    throw new Error("the reference page cannot be made");
  return {
    html: await toAsset(page.rawPayload),
    script: await toAsset(script.rawPayload),
    policy: policyFor(page.payload),
  };
};

/** Whether the value of If-None-Match names the tag (RFC 9110, 13.1.2: weak or not makes no difference). */
const names = (given: string | undefined, tag: string): boolean =>
  given
    ?.split(",")
    .map((one) => one.trim())
    .some((one) => one === "*" || one === tag || `W/${one}` === tag) ?? false;

const sendAsset = (
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  asset: Asset,
): FastifyReply => {
  // Asked for again each time, which costs nothing while it is the same.
  void reply.headers({ "cache-control": "public, no-cache", etag: asset.tag, vary: "accept-encoding" });
  if (names(request.headers["if-none-match"], asset.tag)) return reply.code(304).send();
  const zipped = new Negotiator(request.raw).encoding(["gzip", "identity"]) === "gzip";
  if (zipped) void reply.header("content-encoding", "gzip");
  return reply.header("content-type", type).send(zipped ? asset.zipped : asset.bytes);
};

/**
 * Serves the OpenAPI document and a page that shows it, both without a key. All that the page loads comes from here:
 * its Content-Security-Policy allows nothing else.
 */
export const registerReference = (
  app: FastifyInstance,
  deps: { readonly publicBaseUrl?: string | undefined } = {},
): void => {
  const method = ["GET", "HEAD"];
  const document = Buffer.from(JSON.stringify(createOpenApi(deps)));
  // Made when somebody looks at it first: three megabytes that most processes never need.
  let made: Promise<Page> | undefined;
  const page = (): Promise<Page> =>
    (made ??= makePage().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));

  app.route({
    method,
    url: DOCUMENT,
    handler: (_request, reply) =>
      reply
        .headers({ "content-type": "application/json", "cache-control": "public, no-cache" })
        .send(document),
  });
  app.route({
    method,
    url: PAGE,
    handler: async (request, reply) => {
      const { html, policy } = await page();
      void reply.header("content-security-policy", policy);
      return sendAsset(request, reply, HTML_TYPE, html);
    },
  });
  app.route({
    method,
    url: SCRIPT,
    handler: async (request, reply) => sendAsset(request, reply, SCRIPT_TYPE, (await page()).script),
  });
};
