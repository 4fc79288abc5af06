import type { FastifyRequest } from "fastify";

export const API_PREFIX = "/api";

const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;
const WHOLE_LINK = /^\/?(?:api\/?)?https?(?::|%3A)\/{1,2}([^/?]+)(?=\/)/i;
const DOUBLED_PREFIX = /^\/api(?=\/api\/)/;

/** With `/api`, without a trailing slash. */
export type AddressOf = (
  request: Pick<FastifyRequest, "protocol"> & {
    readonly headers: Pick<FastifyRequest["headers"], "host">;
    readonly socket: Pick<FastifyRequest["socket"], "localPort">;
  },
) => string;

/** Without `X-Forwarded-Host`: a caller may have written it. */
export const createAddressOf =
  (publicBaseUrl: string | undefined): AddressOf =>
  (request) => {
    if (publicBaseUrl !== undefined) return publicBaseUrl;
    const scheme = request.protocol.toLowerCase() === "https" ? "https" : "http";
    const given = request.headers.host;
    const host =
      given !== undefined && AUTHORITY.test(given) ? given : `localhost:${request.socket.localPort ?? 80}`;
    return `${scheme}://${host}${API_PREFIX}`;
  };

const nameOf = (authority: string): string => authority.toLowerCase().replace(/:\d*$/, "");

/** Some clients prepend the address to links (`/https://host/api/v2/…`); links to other hosts stay as they are. */
export const unwrapTarget = (target: string, hosts: readonly (string | undefined)[]): string =>
  target
    .replace(WHOLE_LINK, (link, authority: string) =>
      hosts.some((host) => host !== undefined && nameOf(host) === nameOf(authority)) ? "" : link,
    )
    .replace(DOUBLED_PREFIX, "");
