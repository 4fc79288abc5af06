import { connect } from "node:net";

export type Address = { readonly host: string; readonly port: number };

const TIMEOUT_MS = 3_000;

/** null: something accepts a connection there. Otherwise why not: ECONNREFUSED, ENOTFOUND, ETIMEDOUT, … */
const refusalOf = ({ host, port }: Address): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: TIMEOUT_MS });
    const end = (answer: string | null) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", end(null));
    socket.once("timeout", end("ETIMEDOUT"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message)());
  });

/**
 * null: one of the addresses accepts connections. Otherwise why the first does not. Clients that try again for as long
 * as it takes would not say so.
 */
export const whyUnreachable = async (addresses: readonly Address[]): Promise<string | null> => {
  const refusals = await Promise.all(addresses.map(refusalOf));
  return refusals.includes(null) ? null : (refusals[0] ?? null);
};

/** `host:port`, the host perhaps an IPv6 address in brackets. */
export const addressOf = (text: string): Address => {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
};
