import { isRetryable, type Logger } from "@conversation-export/runtime";
import kafkajs, { type Mechanism } from "kafkajs";
import type { TokenSource } from "../login/token-source.ts";

const SEPARATOR = "\u0001";

const framed = (text: string): Buffer => {
  const bytes = Buffer.from(text);
  const size = Buffer.alloc(4);
  size.writeInt32BE(bytes.length);
  return Buffer.concat([size, bytes]);
};

const response = {
  // A promise: kafkajs calls `then` on it for brokers without SaslAuthenticate.
  decode: (raw: Buffer): Promise<Buffer> => Promise.resolve(raw.subarray(4)),
  parse: (bytes: Buffer): string => bytes.toString(),
};

const requestOf = (text: string) => ({ encode: () => framed(text) });

/** By RFC 7628, such as `invalid_token`. */
const statusOf = (challenge: string): string => {
  try {
    const { status } = JSON.parse(challenge) as { status?: unknown };
    if (typeof status === "string") return status;
  } catch {
    // Reported below.
  }
  return "without a reason";
};

/** kafkajs' types leave the arguments out. */
const refusal = (message: string, cause?: unknown): Error => {
  const { KafkaJSSASLAuthenticationError } = kafkajs as unknown as {
    KafkaJSSASLAuthenticationError: new (message: string, options: { cause: unknown }) => Error;
  };
  return new KafkaJSSASLAuthenticationError(message, { cause });
};

/** kafkajs and its callers then try again. */
const passing = (message: string, broker: string, cause?: unknown): Error =>
  Object.assign(new kafkajs.KafkaJSConnectionError(message, { broker }), { cause });

const tokenError = (error: unknown, broker: string): Error => {
  const message = error instanceof Error ? error.message : String(error);
  return isRetryable(error) ? passing(message, broker, error) : refusal(message, error);
};

/** Kafka's words; the next connection accepts another principal. */
const OTHER_PRINCIPAL = /^Cannot change principals during re-authentication/;

export type TokenMechanism = Mechanism & {
  /** Throws without a token, before the handshake makes the connection useless. */
  readonly beforeHandshake: (broker: string) => Promise<void>;
};

/** kafkajs' own OAUTHBEARER takes a rejection by challenge for success. */
export const tokenMechanism = (
  source: TokenSource,
  extensions: Readonly<Record<string, string>>,
  log: Logger,
): TokenMechanism => {
  const onLateRenewal = (error: unknown): void =>
    log.warn({ error: String(error) }, "renewing the token for Kafka failed");
  const more = Object.entries(extensions).map(([name, value]) => `${name}=${value}${SEPARATOR}`);

  const ask = (broker: string): Promise<string> =>
    source.ask(onLateRenewal).catch((error: unknown) => {
      throw tokenError(error, broker);
    });

  return {
    mechanism: "oauthbearer",
    beforeHandshake: async (broker) => void (await ask(broker)),
    authenticationProvider: ({ host, port, saslAuthenticate }) => ({
      authenticate: async () => {
        const broker = `${host}:${port}`;
        const token = await ask(broker);
        const refused = (reason: string): Error => {
          const mayHelp = source.refused(token);
          const clean = reason.replaceAll(token, "[redacted]").replaceAll(/[\p{Cc}\s]+/gu, " ");
          const message = `the broker ${broker} refuses the token: ${clean.slice(0, 300)}`;
          if (!mayHelp) return refusal(message);
          log.warn({ error: message }, "login to Kafka failed, retrying with a new token");
          return passing(message, broker);
        };
        const first = `n,,${SEPARATOR}auth=Bearer ${token}${SEPARATOR}${more.join("")}${SEPARATOR}`;
        let challenge: string | undefined;
        try {
          challenge = (await saslAuthenticate({ request: requestOf(first), response })) ?? "";
          if (challenge === "") {
            source.accepted();
            return;
          }
          // Before this the broker reports no error.
          await saslAuthenticate({ request: requestOf(SEPARATOR), response });
        } catch (error) {
          if (challenge !== undefined) throw refused(statusOf(challenge));
          if (!(error instanceof kafkajs.KafkaJSProtocolError)) throw error;
          if (OTHER_PRINCIPAL.test(error.message)) {
            const message = `the broker ${broker} takes a token of another principal on a new connection alone`;
            log.info({ error: message }, "connecting to Kafka anew");
            throw passing(message, broker);
          }
          throw refused(error.message);
        }
        throw refused(statusOf(challenge));
      },
    }),
  };
};
