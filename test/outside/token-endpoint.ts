import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:https";
import { text } from "node:stream/consumers";
import { listen } from "../system/listen.ts";
import type { Identity } from "./certificates.ts";

/** A number is the status of its answer. */
export type EndpointMood = "well" | "silent" | number;

/** OAuth 2 client credentials, RS256. */
export type TestTokenEndpoint = {
  readonly url: string;
  readonly jwks: string;
  /** How many tokens of a scope. */
  readonly given: (scope: string) => number;
  mood: EndpointMood;
  audience: string;
  /** Brokers take it for the principal. */
  subject: string;
  readonly close: () => Promise<void>;
};

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export const startTokenEndpoint = async (options: {
  readonly identity: Identity;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly issuer: string;
  readonly audience: string;
  readonly livesSeconds: number;
}): Promise<TestTokenEndpoint> => {
  const { identity, clientId, clientSecret, issuer, livesSeconds } = options;
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const header = part({ alg: "RS256", typ: "JWT", kid: "one" });
  const isClient = (authorization = ""): boolean => {
    const given = Buffer.from(authorization.replace("Basic ", ""), "base64").toString().split(":");
    const [id, secret] = given.map((text) => new URLSearchParams(`x=${text}`).get("x"));
    return id === clientId && secret === clientSecret;
  };
  const state = { mood: "well" as EndpointMood, audience: options.audience, subject: clientId };
  const given = new Map<string, number>();

  const token = (scope: string): string => {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: issuer,
      sub: state.subject,
      aud: state.audience,
      iat: now,
      exp: now + livesSeconds,
    };
    const signed = `${header}.${part({ ...claims, scope })}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`;
  };

  const server = createServer({ cert: identity.cert, key: identity.key }, (request, response) => {
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const answer = (body: string): void => {
      const scope = new URLSearchParams(body).get("scope") ?? "";
      if (state.mood === "silent") return;
      if (state.mood !== "well") send(state.mood, { error: "temporarily_unavailable" });
      else if (isClient(request.headers.authorization)) {
        given.set(scope, (given.get(scope) ?? 0) + 1);
        send(200, { access_token: token(scope), token_type: "Bearer", expires_in: livesSeconds });
      } else send(401, { error: "invalid_client", error_description: "Client authentication failed" });
    };
    // A client may end before it has asked.
    void text(request).then(answer, () => undefined);
  });
  const { port, close } = await listen(server);
  return Object.assign(state, {
    url: `https://localhost:${port}/token`,
    jwks: JSON.stringify({
      keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }],
    }),
    given: (scope: string) => given.get(scope) ?? 0,
    close,
  });
};
