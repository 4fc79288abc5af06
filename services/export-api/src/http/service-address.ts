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
 * The address as the client sees it: the configured one, else the one in the request. `X-Forwarded-Host`
 * counts for nothing: a proxy may pass on what the caller wrote.
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
 * Some clients prepend the service's address to any link, absolute or relative, which makes a path such as
 * `/https://host/api/v2/export/messages` or `/api/api/data_api/v1/messages`. Returns the target that was
 * meant, other targets unchanged.
 * @param hosts of the service, each with or without a port; a link to any other is left alone
 */
export const unwrapTarget = (target: string, hosts: readonly (string | undefined)[]): string =>
  target
    .replace(WHOLE_LINK, (link, authority: string) =>
      hosts.some((host) => host !== undefined && nameOf(host) === nameOf(authority)) ? "" : link,
    )
    .replace(DOUBLED_PREFIX, "");
