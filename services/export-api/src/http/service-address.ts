import type { FastifyRequest } from "fastify";

/** The prefix of every v2 path. */
export const API_PREFIX = "/api";

const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;
const WHOLE_LINK = /^\/?(?:api\/?)?https?(?::|%3A)\/{1,2}[^/?]+(?=\/)/i;
const DOUBLED_PREFIX = /^\/api(?=\/api\/)/;

/** The address of the service with its `/api` prefix, without a slash at the end. */
export type AddressOf = (
  request: Pick<FastifyRequest, "protocol" | "host"> & {
    readonly headers: Pick<FastifyRequest["headers"], "host">;
    readonly socket: Pick<FastifyRequest["socket"], "localPort">;
  },
) => string;

/**
 * The address as the client sees it: the configured one, else the one that a trusted proxy forwards, else the
 * one in the request.
 */
export const createAddressOf =
  (publicBaseUrl: string | undefined): AddressOf =>
  (request) => {
    if (publicBaseUrl !== undefined) return publicBaseUrl;
    const scheme = request.protocol.toLowerCase() === "https" ? "https" : "http";
    const host = [request.host, request.headers.host].find(
      (name) => name !== undefined && AUTHORITY.test(name),
    );
    return `${scheme}://${host ?? `localhost:${request.socket.localPort ?? 80}`}${API_PREFIX}`;
  };

/**
 * Some clients prepend the service's address to any link, absolute or relative, which makes a path such as
 * `/https://host/api/v2/export/messages` or `/api/api/data_api/v1/messages`. Returns the target that was
 * meant, other targets unchanged.
 */
export const unwrapTarget = (target: string): string =>
  target.replace(WHOLE_LINK, "").replace(DOUBLED_PREFIX, "");
