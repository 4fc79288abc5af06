import { connect, isIP } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { KafkaServers } from "@conversation-export/runtime";
import { tlsTroubleOf } from "@conversation-export/runtime";

export type Address = { readonly host: string; readonly port: number };

/** Certificates that the client presents and trusts. */
type Tls = NonNullable<KafkaServers["ssl"]>;

const TIMEOUT_MS = 3_000;

/** Code for a port that accepts connections but does not speak TLS. */
export const NO_TLS = "ERR_SSL_WRONG_VERSION_NUMBER";

/** Resolves to null when a connection is accepted, else to an error code such as ECONNREFUSED. */
const refusalOf = ({ host, port }: Address, tls: Tls | undefined, verifies = true): Promise<string | null> =>
  new Promise((resolve) => {
    let accepted = false;
    const socket =
      tls === undefined
        ? connect({ host, port, timeout: TIMEOUT_MS })
        : connectSecurely({
            ...tls,
            host,
            port,
            timeout: TIMEOUT_MS,
            rejectUnauthorized: verifies,
            ...(isIP(host) === 0 && { servername: host }),
          });
    const end = (answer: string | null): void => {
      socket.destroy();
      // A server without TLS waits for more bytes, answers something else, or closes.
      resolve(answer !== null && accepted && tlsTroubleOf(answer) === undefined ? NO_TLS : answer);
    };
    socket.once("connect", () => {
      accepted = true;
      if (tls === undefined) end(null);
    });
    socket.once("secureConnect", () => end(null));
    socket.once("timeout", () => end("ETIMEDOUT"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.once("close", () => end("ECONNRESET"));
  });

/**
 * Resolves to null when one of the addresses accepts connections (over TLS when given), else to the error
 * code of the first. Clients that retry forever would never report it.
 */
export const whyUnreachable = async (addresses: readonly Address[], tls?: Tls): Promise<string | null> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, tls)));
  return refusals.includes(null) ? null : (refusals[0] ?? null);
};

/** Resolves to true when one of the addresses speaks TLS, with any certificate. */
export const speakTls = async (addresses: readonly Address[]): Promise<boolean> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, {}, false)));
  // A server that asks for a client certificate speaks TLS too.
  return refusals.some((refusal) => refusal === null || tlsTroubleOf(refusal) === "client_certificate");
};

/** Parses `host:port`; an IPv6 host is in brackets. */
export const addressOf = (text: string): Address => {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
};
