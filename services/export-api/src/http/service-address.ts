import type { FastifyRequest } from "fastify";

/** The prefix of every v2 path. */
export const API_PREFIX = "/api";

const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;
const WHOLE_LINK = /^\/?(?:api\/?)?https?(?::|%3A)\/{1,2}([^/?]+)(?=\/)/i;
const DOUBLED_PREFIX = /^\/api(?=\/api\/)/;

/** The address of the service with its `/api` prefix, without a slash at the end. */
export type AddressOf = (
  request: Pick<FastifyRequest, "protocol"> & {
    readonly headers: Pick<FastifyRequest["headers"], "host">;
    readonly socket: Pick<FastifyRequest["socket"], "localPort">;
  },
) => string;

/**
 * The configured address, else the request's. `X-Forwarded-Host` is ignored: a caller may have written it.
 */
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

/**
 * Some clients prepend the service's address to any link (`/https://host/api/v2/…`, `/api/api/data_api/…`):
 * returns the target meant, others unchanged.
 * @param hosts of the service, each with or without a port; a link to any other is left alone
 */
export const unwrapTarget = (target: string, hosts: readonly (string | undefined)[]): string =>
  target
    .replace(WHOLE_LINK, (link, authority: string) =>
      hosts.some((host) => host !== undefined && nameOf(host) === nameOf(authority)) ? "" : link,
    )
    .replace(DOUBLED_PREFIX, "");
