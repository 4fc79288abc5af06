import type { IncomingMessage } from "node:http";

/** The prefix that every v2 path has behind the host. */
export const API_PREFIX = "/api";

const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;
const WHOLE_LINK = /^\/?(?:api\/?)?https?(?::|%3A)\/{1,2}[^/?]+(?=\/)/i;

const firstOf = (header: string | string[] | undefined): string | undefined =>
  (Array.isArray(header) ? header[0] : header)?.split(",", 1)[0]?.trim();

/**
 * The address of the service with its `/api` prefix as the client sees it: the configured one, else the
 * forwarded one, else the one it called.
 */
export const serviceAddress = (
  request: Pick<IncomingMessage, "headers" | "socket">,
  publicBaseUrl: string | undefined,
): string => {
  if (publicBaseUrl !== undefined) return publicBaseUrl;
  const { headers, socket } = request;
  const scheme = firstOf(headers["x-forwarded-proto"])?.toLowerCase() === "https" ? "https" : "http";
  const host = [firstOf(headers["x-forwarded-host"]), headers.host].find(
    (name) => name !== undefined && AUTHORITY.test(name),
  );
  return `${scheme}://${host ?? `localhost:${socket.localPort ?? 80}`}${API_PREFIX}`;
};

/**
 * Some clients put the service's address in front of the absolute link, which makes a path such as
 * `/https://host/api/v2/export/messages`. Returns the target that was meant; other targets stay as they are.
 */
export const unwrapTarget = (target: string): string => target.replace(WHOLE_LINK, "");
