import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import type { TokenEndpoint } from "@conversation-export/runtime";
import { afterEach, describe, expect, it } from "vitest";
import { requestToken } from "./token-request.ts";

const SECRET = "s3cret+/=&~ü";
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const listen = async (answer: RequestListener): Promise<TokenEndpoint> => {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?tenant=one`,
    clientId: "ex:port",
    clientSecret: SECRET,
    clientAuth: "basic",
    parameters: {},
  };
};

const answering = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  listen((_request, response) => {
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });

const TOKEN = { access_token: "abc.def", expires_in: 300, token_type: "bearer" };

const errorOf = async (endpoint: TokenEndpoint): Promise<Error> => {
  try {
    await requestToken(endpoint);
  } catch (error) {
    const shown = inspect(error, { depth: 9 });
    for (const secret of [SECRET, encodeURIComponent(SECRET), "abc.def"]) expect(shown).not.toContain(secret);
    return error as Error;
  }
  throw new Error("it gives a token");
};

describe("the request for a token", () => {
  it.each(["basic", "post"] as const)("names the client by %s, and asks for all that is set", async (how) => {
    let seen: { path?: string | undefined; login?: string | undefined; body: string } = { body: "" };
    const endpoint = await listen((request, response) => {
      let body = "";
      request
        .on("data", (part) => {
          body += String(part);
        })
        .on("end", () => {
          seen = { path: request.url, login: request.headers.authorization, body };
          response.end(JSON.stringify(TOKEN));
        });
    });
    const parameters = { audience: "https://kafka/a b", resource: "r" };
    const given = await requestToken({ ...endpoint, clientAuth: how, scope: "read write", parameters });
    expect(given).toEqual({ value: "abc.def", livesMs: 300_000 });
    expect(seen.path).toBe("/token?tenant=one");
    const {
      client_id: id,
      client_secret: secret,
      ...fields
    } = Object.fromEntries(new URLSearchParams(seen.body));
    expect(fields).toEqual({ ...parameters, grant_type: "client_credentials", scope: "read write" });
    if (how === "post") {
      expect([id, secret, seen.login]).toEqual(["ex:port", SECRET, undefined]);
      return;
    }
    expect([id, secret]).toEqual([undefined, undefined]);
    const login = Buffer.from(seen.login?.replace("Basic ", "") ?? "", "base64")
      .toString()
      .split(":");
    expect(login.map((part) => new URLSearchParams(`x=${part}`).get("x"))).toEqual(["ex:port", SECRET]);
  });

  it("takes expires_in as text, as some endpoints write it", async () => {
    expect(await requestToken(await answering(200, { ...TOKEN, expires_in: "60" }))).toMatchObject({
      livesMs: 60_000,
    });
  });

  it.each([
    [
      401,
      { error: "invalid_client", error_description: `no ${SECRET}\nhere` },
      /answers 401: invalid_client, no \[redacted\] here$/,
    ],
    [400, "<html>", /answers 400$/],
    [307, "", /answers 307, a redirect, which a request with a secret does not follow/],
    [200, "<html>", /without an access_token/],
    [200, { ...TOKEN, access_token: "a\nb" }, /without an access_token/],
    [200, { ...TOKEN, expires_in: undefined }, /does not say in expires_in/],
    [200, { ...TOKEN, expires_in: 29 }, /gives tokens for 29 s/],
    [200, { ...TOKEN, token_type: "mac" }, /another type than Bearer/],
    [200, { ...TOKEN, more: "x".repeat(300_000) }, /more than 262144 bytes/],
  ])("is refused for good by %i %o", async (status, body, said) => {
    const endpoint = await answering(status, body, { location: "http://127.0.0.1:9/elsewhere" });
    const error = await errorOf(endpoint);
    expect(error).toMatchObject({ code: "bus_token", retryable: false });
    expect(error.message).toMatch(said);
  });

  it.each([500, 503, 429, 408])("may be repeated after %i", async (status) => {
    expect(await errorOf(await answering(status, { error: "temporarily_unavailable" }))).toMatchObject({
      code: "bus_token_away",
      retryable: true,
    });
  });

  it("may be repeated when nobody answers, at all or in time", async () => {
    const endpoint = await listen(() => undefined);
    const [silent, closed] = await Promise.all([
      errorOf(endpoint),
      errorOf({ ...endpoint, url: "http://127.0.0.1:1/token" }),
    ]);
    expect(silent).toMatchObject({ code: "bus_token_away", message: expect.stringContaining("within 5 s") });
    expect(closed).toMatchObject({
      code: "bus_token_away",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  it("ends in time when an answer trickles in for ever", async () => {
    const endpoint = await listen((_request, response) => {
      const timer = setInterval(() => response.write(" "), 200);
      response.on("close", () => clearInterval(timer));
    });
    expect(await errorOf(endpoint)).toMatchObject({ code: "bus_token_away" });
  });

  it("ends when an answer changes the protocol", async () => {
    const endpoint = await listen(() => undefined);
    servers.at(-1)?.on("connection", (socket) => {
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    });
    const error = await errorOf(endpoint);
    expect(error.message).toMatch(/answers 101$/);
  });

  it("says nothing of what the request held, however it is written", async () => {
    const parameters = { assertion: "s3cret+/=&~ü and more", resource: "a key", short: "abc" };
    const spellings = [parameters.assertion, parameters.resource, SECRET].flatMap((value) => [
      value,
      encodeURIComponent(value),
      encodeURIComponent(value).toLowerCase(),
      new URLSearchParams({ "": value }).toString().slice(1),
    ]);
    for (const spelling of spellings) {
      const error_description = `no ${spelling} here`;
      const endpoint = await answering(400, { error: "invalid", error_description });
      const { message } = await errorOf({ ...endpoint, parameters });
      expect(message).toMatch(/answers 400: invalid, no \[redacted\] here$/);
    }
  });
});
