import { connect, isIP } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { KafkaServers } from "@conversation-export/runtime";
import { tlsTroubleOf } from "@conversation-export/runtime";

export type Address = { readonly host: string; readonly port: number };

type Tls = NonNullable<KafkaServers["ssl"]>;

const TIMEOUT_MS = 3_000;

/** Connections are accepted, but without TLS. */
const NO_TLS = "ERR_SSL_WRONG_VERSION_NUMBER";

/** null: accepted; else an error code. */
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
      // A server without TLS may wait, answer something else, or close.
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

/** null when one accepts; clients that retry forever would never report a failure. */
export const whyUnreachable = async (addresses: readonly Address[], tls?: Tls): Promise<string | null> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, tls)));
  return refusals.includes(null) ? null : (refusals[0] ?? null);
};

/** With any certificate. */
export const speakTls = async (addresses: readonly Address[]): Promise<boolean> => {
  const refusals = await Promise.all(addresses.map((address) => refusalOf(address, {}, false)));
  // A server that asks for a client certificate speaks TLS.
  return refusals.some((refusal) => refusal === null || tlsTroubleOf(refusal) === "client_certificate");
};

/** IPv6 hosts are in brackets. */
export const addressOf = (text: string): Address => {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
};
