import { inspect } from "node:util";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import kafkajs from "kafkajs";
import { describe, expect, it } from "vitest";
import { createTokenSource } from "../login/token-source.ts";
import { loginError, mayPassAtStart, startError } from "./errors.ts";
import { tokenMechanism } from "./token-login.ts";

type Answer = string | Error;
const log = createLogger({ service: "test", level: "silent" });
const framed = (text: string): Buffer => {
  const bytes = Buffer.from(`\0\0\0\0${text}`);
  bytes.writeInt32BE(bytes.length - 4);
  return bytes;
};
const protocolError = () =>
  new kafkajs.KafkaJSProtocolError(
    Object.assign(new Error("invalid credentials, token the.token"), {
      type: "SASL_AUTHENTICATION_FAILED",
      code: 58,
      retriable: false,
    }),
  );

const logIn = async (
  answers: Answer[],
  token: () => Promise<string> = () => Promise.resolve("the.token"),
  refused?: () => boolean,
) => {
  const sent: string[] = [];
  let asked = 0;
  const source = createTokenSource({
    fetch: async () => {
      asked += 1;
      return { value: await token(), livesMs: 600_000 };
    },
  });
  const { authenticationProvider } = tokenMechanism(
    refused === undefined ? source : { ...source, refused },
    { logicalCluster: "lkc-1", identityPoolId: "p" },
    log,
  );
  const authenticator = authenticationProvider({
    host: "broker",
    port: 9092,
    logger: undefined as never,
    saslAuthenticate: async ({ request, response }) => {
      const bytes = await request.encode();
      expect(bytes.readInt32BE(0)).toBe(bytes.length - 4);
      sent.push(bytes.subarray(4).toString());
      const answer = answers.shift() ?? "";
      if (answer instanceof Error) throw answer;
      const decoded = response?.decode(framed(answer));
      // As kafkajs does where a broker has no SaslAuthenticate.
      return (decoded as unknown as Promise<Buffer> | undefined)?.then((bytes) => response?.parse(bytes));
    },
  });
  const error: unknown = await authenticator.authenticate().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error !== undefined) expect(inspect(error, { depth: 9 })).not.toContain("the.token");
  return { sent, error, asked: () => asked, again: () => source.ask() };
};

const CHALLENGE = '{"status":"invalid_token","scope":"x"}';

describe("the login by a token", () => {
  it("sends the token and the extensions as RFC 7628 says", async () => {
    const { sent, error } = await logIn([""]);
    expect(error).toBeUndefined();
    expect(sent).toEqual([
      "n,,\u0001auth=Bearer the.token\u0001logicalCluster=lkc-1\u0001identityPoolId=p\u0001\u0001",
    ]);
  });

  it.each([
    ["a challenge and then an error", [CHALLENGE, protocolError()], /refuses the token: invalid_token$/],
    ["a challenge and then nothing", [CHALLENGE, ""], /refuses the token: invalid_token$/],
    [
      "a challenge and then the end of the connection",
      [CHALLENGE, new kafkajs.KafkaJSConnectionError("closed")],
      /refuses the token: invalid_token$/,
    ],
    ["a challenge that is no JSON", ["no", ""], /refuses the token: without a reason$/],
    ["an error at once", [protocolError()], /refuses the token: invalid credentials, token \[redacted\]$/],
  ])("is refused by %s: it may help to try another token, some times", async (_how, answers, said) => {
    const { sent, error, asked, again } = await logIn([...answers]);
    expect((error as Error).message).toMatch(said);
    expect(mayPassAtStart(error)).toBe(true);
    if (answers.length > 1) expect(sent[1]).toBe("\u0001");
    await again();
    expect(asked()).toBe(2);
  });

  it("is refused for good at last, with a code also while it runs", async () => {
    const { error } = await logIn([CHALLENGE, ""], undefined, () => false);
    expect(mayPassAtStart(error)).toBe(false);
    for (const reported of [startError("consumer", error), loginError("consumer", error)]) {
      expect(reported).toMatchObject({ code: "bus_credentials", retryable: false });
    }
    expect(loginError("consumer", new Error("another"))).toBeUndefined();
  });

  it("keeps a token that is refused on this connection alone, since its principal is another", async () => {
    const change = new kafkajs.KafkaJSProtocolError(
      Object.assign(new Error("Cannot change principals during re-authentication from IAM.a/s1: IAM.a/s2"), {
        type: "SASL_AUTHENTICATION_FAILED",
        code: 58,
        retriable: false,
      }),
    );
    const { error, asked, again } = await logIn([change]);
    expect(mayPassAtStart(error)).toBe(true);
    await again();
    expect(asked()).toBe(1);
  });

  it("says nothing of a token in a long reason", async () => {
    const { error } = await logIn([JSON.stringify({ status: `${"x".repeat(296)}the.token` }), ""]);
    expect(String(error)).not.toContain("the.");
  });

  it("passes on a broken connection as one, and keeps the token", async () => {
    const { error, asked, again } = await logIn([new kafkajs.KafkaJSConnectionError("closed")]);
    expect(mayPassAtStart(error)).toBe(true);
    await again();
    expect(asked()).toBe(1);
  });

  it("ends for good without a token, and waits where the endpoint is away", async () => {
    const refused = await logIn([], () => Promise.reject(new ServiceError("bus_token", "answers 401")));
    expect(mayPassAtStart(refused.error)).toBe(false);
    const started = startError("consumer", refused.error);
    expect(started).toMatchObject({ code: "bus_token", message: expect.stringContaining("answers 401") });
    const away = await logIn([], () =>
      Promise.reject(new ServiceError("bus_token_away", "answers 503", { retryable: true })),
    );
    expect(mayPassAtStart(away.error)).toBe(true);
    expect(String(away.error)).toContain("answers 503");
  });
});
