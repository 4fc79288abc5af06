import { connect, isIP } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { KafkaServers } from "@conversation-export/runtime";
import { tlsTroubleOf } from "@conversation-export/runtime";

export type Address = { readonly host: string; readonly port: number };

/** What a client shows and trusts. */
type Tls = NonNullable<KafkaServers["ssl"]>;

const TIMEOUT_MS = 3_000;

/** Of a port that accepts connections, but does not answer with TLS. */
export const NO_TLS = "ERR_SSL_WRONG_VERSION_NUMBER";

/** null: something accepts a connection there. Otherwise why not: ECONNREFUSED, ENOTFOUND, CERT_HAS_EXPIRED, … */
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
      // Who does not know TLS waits for more, answers with something else, or closes.
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
 * null: one of the addresses accepts connections, with TLS when that is given. Otherwise why the first does not. Clients
 * that try again for as long as it takes would not say so.
 */
export const whyUnreachable = async (addresses: readonly Address[], tls?: Tls): Promise<string | null> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, tls)));
  return refusals.includes(null) ? null : (refusals[0] ?? null);
};

/** true: one of the addresses answers with TLS, whatever its certificate is. */
export const speakTls = async (addresses: readonly Address[]): Promise<boolean> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, {}, false)));
  // Who asks for a certificate of the client speaks TLS too.
  return refusals.some((refusal) => refusal === null || tlsTroubleOf(refusal) === "client_certificate");
};

/** `host:port`, the host perhaps an IPv6 address in brackets. */
export const addressOf = (text: string): Address => {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
};
