import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Negotiator from "negotiator";
import type { Endpoint } from "../operations/endpoint.ts";
import { createOpenApi } from "./openapi.ts";
import { API_PREFIX } from "../http/service-address.ts";

const DOCUMENT = `${API_PREFIX}/openapi.json`;
const PAGE = `${API_PREFIX}/reference`;
const SCRIPT = `${PAGE}/scalar.js`;

const HTML_TYPE = "text/html; charset=utf-8";
const SCRIPT_TYPE = "text/javascript; charset=utf-8";

type Asset = { readonly bytes: Buffer; readonly zipped: Buffer; readonly tag: string };

const toAsset = async (bytes: Buffer): Promise<Asset> => ({
  bytes,
  zipped: await promisify(gzip)(bytes),
  // Weak, since both codings have it.
  tag: `W/"${createHash("sha256").update(bytes).digest("base64url")}"`,
});

/** Nothing contacts other hosts. */
const OPTIONS = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: "bearer" },
};

// Relative, for proxies that add to the path. A date's pattern would replace its type.
const START = `
const withoutDatePattern = (_, value) => {
  if (typeof value?.pattern === "string" && value.pattern.includes(String.raw\`\\d{4}-\`)) delete value.pattern;
  return value;
};
fetch("openapi.json")
  .then((answer) => answer.text())
  .then((text) =>
    Scalar.createApiReference("#app", {
      sources: [{ content: JSON.parse(text, withoutDatePattern), title: "Conversation export" }],
      ...${JSON.stringify(OPTIONS)},
    }),
  );
`;

const HTML = `<!doctype html>
<html>
  <head>
    <title>Conversation export: reference</title>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
  </head>
  <body>
    <div id="app"></div>
    <script src="reference/scalar.js"></script>
    <script type="text/javascript">${START}</script>
  </body>
</html>
`;

const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash("sha256").update(START).digest("base64")}'`,
  // The script puts its styles into the page.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Scalar's plugin for Fastify holds it as a string. */
const readScript = async (): Promise<Buffer> => {
  const require = createRequire(import.meta.url);
  const plugin = await readFile(require.resolve("@scalar/fastify-api-reference"), "utf8");
  const [, literal] = /^var standalone_default = (".*");$/m.exec(plugin) ?? [];
  if (literal === undefined) throw new Error("Scalar's package holds no script for the reference page");
  // Not JSON: the literal has bare control characters.
  return Buffer.from(runInNewContext(literal) as string);
};

/** RFC 9110, 13.1.2. */
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
  // Browsers ask each time and may get 304.
  void reply.headers({ "cache-control": "public, no-cache", etag: asset.tag, vary: "accept-encoding" });
  if (names(request.headers["if-none-match"], asset.tag)) return reply.code(304).send();
  const zipped = new Negotiator(request.raw).encoding(["gzip", "identity"]) === "gzip";
  if (zipped) void reply.header("content-encoding", "gzip");
  return reply.header("content-type", type).send(zipped ? asset.zipped : asset.bytes);
};

const method = ["GET", "HEAD"];

/** Needs no key. */
export const registerDocument = (
  app: FastifyInstance,
  deps: { readonly endpoints: readonly Endpoint[]; readonly publicBaseUrl?: string | undefined },
): void => {
  const document = Buffer.from(JSON.stringify(createOpenApi(deps)));
  app.route({
    method,
    url: DOCUMENT,
    handler: (_request, reply) =>
      reply
        .headers({ "content-type": "application/json", "cache-control": "public, no-cache" })
        .send(document),
  });
};

export const registerEntrance = (app: FastifyInstance, deps: { readonly reference: boolean }): void => {
  const target = deps.reference ? PAGE : DOCUMENT;
  for (const url of ["/", API_PREFIX, `${API_PREFIX}/`]) {
    // Relative, for proxies that add to the path.
    const location = url.endsWith("/") && url !== "/" ? target.slice(url.length) : target.slice(1);
    app.route({ method, url, handler: (_request, reply) => reply.redirect(location, 302) });
  }
};

/** Needs no key. */
export const registerReference = (app: FastifyInstance): void => {
  const html = toAsset(Buffer.from(HTML));
  // Most processes never need these three megabytes.
  let reading: Promise<Asset> | undefined;
  const script = (): Promise<Asset> =>
    (reading ??= readScript()
      .then(toAsset)
      .catch((error: unknown) => {
        reading = undefined;
        throw error;
      }));

  app.route({
    method,
    url: PAGE,
    handler: async (request, reply) => {
      void reply.header("content-security-policy", POLICY);
      return sendAsset(request, reply, HTML_TYPE, await html);
    },
  });
  app.route({
    method,
    url: SCRIPT,
    handler: async (request, reply) => sendAsset(request, reply, SCRIPT_TYPE, await script()),
  });
};
