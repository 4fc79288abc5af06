import type { KafkaLogin, KafkaServers } from "@conversation-export/runtime";
import { createDefaultMskSigner } from "./msk-token.ts";
import { requestToken } from "./token-request.ts";
import { createTokenSource, type TokenSource } from "./token-source.ts";

export type TokenLogin = Extract<KafkaLogin, { mechanism: "oauthbearer" | "aws-msk-iam" }>;

const sources = new Map<string, TokenSource>();

export const isTokenLogin = (login: KafkaLogin | undefined): login is TokenLogin =>
  login !== undefined && !("password" in login);

/** One for all clients of this process. */
export const tokensOf = (login: TokenLogin, ca?: string): TokenSource => {
  const key = JSON.stringify([login, ca]);
  const known = sources.get(key);
  if (known !== undefined) return known;
  const made = createTokenSource({
    fetch:
      login.mechanism === "aws-msk-iam"
        ? createDefaultMskSigner(login.region)
        : () => requestToken(login.endpoint, ca),
  });
  sources.set(key, made);
  return made;
};

/** Throws `bus_token` or `bus_token_away`. */
export const requireToken = async ({ sasl, ssl }: KafkaServers): Promise<void> => {
  if (isTokenLogin(sasl)) await tokensOf(sasl, ssl?.ca).ask();
};
