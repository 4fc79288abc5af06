import { validateHeaderValue } from "node:http";
import { z } from "zod";
import { type Environment, parseEnv } from "./env.ts";

export type TraceSettings = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Share, 0 to 1, of the traces that no other process sampled. */
  readonly ratio: number;
  readonly serviceName: string;
  readonly attributes: Readonly<Record<string, string>>;
};

const NAME = /^[\w!#$%&'*+.^`|~/-]+$/;
const PATH = "/v1/traces";

const endpoint = z
  .url({ protocol: /^https?$/, error: "must be an address such as http://collector:4318" })
  .transform((text, context) => {
    const { username, password, search, hash, origin, pathname } = new URL(text);
    if (username === "" && password === "" && search === "" && hash === "") {
      const base = pathname.replace(/\/+$/, "");
      if (!base.endsWith(PATH)) return origin + base + PATH;
      context.addIssue(`must be the address without ${PATH}, which is added`);
    } else {
      context.addIssue("must have no user, query or fragment; credentials go to OTEL_EXPORTER_OTLP_HEADERS");
    }
    return z.NEVER;
  });

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    return undefined;
  }
};

const pairs = z.string().transform((text, context) => {
  const found: [string, string][] = [];
  for (const pair of text.split(",")) {
    if (pair.trim() === "") continue;
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).trim();
    const value = decoded(pair.slice(at + 1));
    if (!NAME.test(name) || value === undefined) {
      context.addIssue("must be a list such as name=value,name=value with percent-encoded values");
      return z.NEVER;
    }
    found.push([name, value]);
  }
  return Object.fromEntries(found);
});

const headers = pairs.refine((values) => {
  try {
    for (const [name, value] of Object.entries(values)) validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}, "must hold what a header of HTTP may hold");

const schema = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headers.optional(),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number("must be a share from 0 to 1").min(0).max(1).default(0.01),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs.optional(),
});

export const readTraceSettings = (env: Environment, serviceName: string): TraceSettings | null => {
  const values = parseEnv(schema, env);
  const { OTEL_EXPORTER_OTLP_ENDPOINT: url } = values;
  if (url === undefined) return null;
  return {
    url,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    ratio: values.OTEL_TRACES_SAMPLER_ARG,
    serviceName: values.OTEL_SERVICE_NAME ?? serviceName,
    attributes: values.OTEL_RESOURCE_ATTRIBUTES ?? {},
  };
};
