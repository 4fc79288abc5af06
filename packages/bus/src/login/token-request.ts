import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { getCACertificates } from "node:tls";
import { ServiceError, type TokenEndpoint, tlsTroubleOf, within } from "@conversation-export/runtime";
import type { FreshToken } from "./token-source.ts";

const TIMEOUT_MS = 5_000;
/** Node may give neither answer nor error. */
const LATEST_MS = TIMEOUT_MS + 500;
const MAX_ANSWER_BYTES = 256 * 1024;
/** kafkajs logs in ten seconds before a session ends. */
const SHORTEST_LIFE_SECONDS = 30;

type Answer = { readonly status: number; readonly text: string };

const form = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1);

const basic = ({ clientId, clientSecret }: TokenEndpoint): string =>
  Buffer.from(`${form(clientId)}:${form(clientSecret)}`).toString("base64");

const bodyOf = (endpoint: TokenEndpoint): string => {
  const { clientId, clientSecret, clientAuth, scope, parameters } = endpoint;
  return new URLSearchParams({
    ...parameters,
    grant_type: "client_credentials",
    ...(scope !== undefined && { scope }),
    ...(clientAuth === "post" && { client_id: clientId, client_secret: clientSecret }),
  }).toString();
};

const post = async (endpoint: TokenEndpoint, ca: string | undefined): Promise<Answer> => {
  const url = new URL(endpoint.url);
  const isTls = url.protocol === "https:";
  const body = bodyOf(endpoint);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = (isTls ? requestTls : requestPlain)(
    url,
    {
      method: "POST",
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        accept: "application/json",
        "content-type": "application/x-www-form-urlencoded",
        "content-length": Buffer.byteLength(body),
        ...(endpoint.clientAuth === "basic" && { authorization: `Basic ${basic(endpoint)}` }),
      },
      // The brokers' authority may be their own.
      ...(isTls && ca !== undefined && { ca: [...getCACertificates("default"), ca] }),
    },
    (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes <= MAX_ANSWER_BYTES) parts.push(part);
        else answer.destroy(refusal(`answers with more than ${MAX_ANSWER_BYTES} bytes`));
      });
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
      );
    },
  );
  sent.on("error", reject);
  // Without a listener Node drops the connection silently.
  sent.on("upgrade", ({ statusCode = 0 }, socket) => {
    socket.destroy();
    resolve({ status: statusCode, text: "" });
  });
  sent.end(body);
  return promise;
};

const refusal = (found: string): ServiceError => new ServiceError("bus_token", `the token endpoint ${found}`);

const away = (found: string, cause?: unknown): ServiceError =>
  new ServiceError("bus_token_away", `the token endpoint ${found}`, { retryable: true, cause });

const fail = (error: unknown): never => {
  if (error instanceof ServiceError) throw error;
  const { code, name } = error as NodeJS.ErrnoException;
  if (tlsTroubleOf(code) !== undefined) {
    throw refusal(`accepts no common TLS (${code}); KAFKA_CA_FILE may hold its authority`);
  }
  const isLate = name === "AbortError" || name === "TimeoutError";
  throw away(isLate ? `does not answer within ${TIMEOUT_MS / 1000} s` : `does not answer (${code ?? name})`);
};

type Fields = Readonly<Record<string, unknown>>;

const parse = (text: string): Fields => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
};

const spellingsOf = (value: string): string[] => {
  const encoded = [form(value), encodeURIComponent(value)];
  return [value, ...encoded, ...encoded.map((text) => text.replaceAll(/%../g, (one) => one.toLowerCase()))];
};

/** Longest first, since one may be part of another. */
const secretsOf = (endpoint: TokenEndpoint): string[] => {
  // Shorter ones would blot out words.
  const values = Object.values(endpoint.parameters).filter(({ length }) => length > 3);
  const all = [basic(endpoint), ...[endpoint.clientSecret, ...values].flatMap(spellingsOf)];
  return all.sort((one, other) => other.length - one.length);
};

const reasonOf = (fields: Fields, endpoint: TokenEndpoint): string => {
  const texts = [fields["error"], fields["error_description"]].filter((text) => typeof text === "string");
  if (texts.length === 0) return "";
  const clean = secretsOf(endpoint)
    .reduce((text, secret) => text.replaceAll(secret, "[redacted]"), texts.join(", "))
    .replaceAll(/[\p{Cc}\s]+/gu, " ");
  return `: ${clean.slice(0, 300)}`;
};

const readAnswer = ({ status, text }: Answer, endpoint: TokenEndpoint): FreshToken => {
  const fields = parse(text);
  const found = `answers ${status}${reasonOf(fields, endpoint)}`;
  if (status >= 500 || status === 408 || status === 429) throw away(found);
  if (status >= 300 && status < 400) {
    throw refusal(`${found}, a redirect, which a request with a secret does not follow`);
  }
  if (status !== 200) throw refusal(found);
  const { access_token: value, expires_in: seconds, token_type: type } = fields;
  if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value)) {
    throw refusal("answers 200 without an access_token in JSON");
  }
  if (typeof type === "string" && type.toLowerCase() !== "bearer") {
    throw refusal("gives tokens of another type than Bearer");
  }
  const life = typeof seconds === "string" || typeof seconds === "number" ? Number(seconds) : Number.NaN;
  if (!Number.isFinite(life)) throw refusal("does not say in expires_in how long its tokens live");
  if (life < SHORTEST_LIFE_SECONDS) {
    throw refusal(`gives tokens for ${life} s, but a login needs ${SHORTEST_LIFE_SECONDS} s or more`);
  }
  return { value, livesMs: life * 1000 };
};

/** `bus_token`: final; `bus_token_away`: may pass; never with the secret or a token. */
export const requestToken = async (endpoint: TokenEndpoint, ca?: string): Promise<FreshToken> =>
  readAnswer(
    await within(post(endpoint, ca), LATEST_MS, () => {
      throw away(`does not answer within ${TIMEOUT_MS / 1000} s`);
    }).catch(fail),
    endpoint,
  );
