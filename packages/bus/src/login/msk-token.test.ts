import { createHash, createHmac } from "node:crypto";
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { createDefaultMskSigner, createMskSigner } from "./msk-token.ts";

// From AWS's documentation.
const KEYS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  sessionToken: "session/+=token",
};
const sign = (expiration?: Date) =>
  createMskSigner("eu-central-1", () =>
    Promise.resolve({ ...KEYS, ...(expiration !== undefined && { expiration }) }),
  )();

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Of SigV4. */
const signingKey = (secret: string, day: string, region: string, service: string): Buffer =>
  [day, region, service, "aws4_request"].reduce<Buffer | string>(hmac, `AWS4${secret}`) as Buffer;

const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );

describe("a token for MSK", () => {
  it("has a key that AWS's own example of a derived key confirms", () => {
    const key = signingKey("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", "us-east-1", "iam");
    expect(key.toString("hex")).toBe("c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
  });

  it("is a request to the cluster, signed by SigV4, with whole seconds", async () => {
    const { value, livesMs } = await sign(new Date(Date.now() + 100_123));
    expect(value).toMatch(/^[\w-]+$/);
    const url = new URL(Buffer.from(value, "base64url").toString());
    const fields = Object.fromEntries(url.searchParams);
    expect(url.origin + url.pathname).toBe("https://kafka.eu-central-1.amazonaws.com/");
    expect(fields).toMatchObject({
      Action: "kafka-cluster:Connect",
      "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
      "X-Amz-Expires": "900",
      "X-Amz-Security-Token": KEYS.sessionToken,
      "X-Amz-SignedHeaders": "host",
    });
    expect(fields["User-Agent"]).toMatch(/^aws-msk-iam-sasl-signer-js\//);
    const date = fields["X-Amz-Date"] ?? "";
    const scope = `${date.slice(0, 8)}/eu-central-1/kafka-cluster/aws4_request`;
    expect(fields["X-Amz-Credential"]).toBe(`${KEYS.accessKeyId}/${scope}`);

    const { "X-Amz-Signature": signature, "User-Agent": _added, ...signed } = fields;
    const query = Object.keys(signed)
      .sort()
      .map((name) => `${encode(name)}=${encode(signed[name] ?? "")}`)
      .join("&");
    const empty = createHash("sha256").update("").digest("hex");
    const request = ["GET", "/", query, `host:${url.host}`, "", "host", empty].join("\n");
    const hash = createHash("sha256").update(request).digest("hex");
    const key = signingKey(KEYS.secretAccessKey, date.slice(0, 8), "eu-central-1", "kafka-cluster");
    expect(signature).toBe(hmac(key, ["AWS4-HMAC-SHA256", date, scope, hash].join("\n")).toString("hex"));
    expect(livesMs).toBeLessThanOrEqual(100_123);
  });

  it("lives for 15 minutes, or as long as the credentials", async () => {
    const inMinutes = async (expiration?: Date) => (await sign(expiration)).livesMs / 60_000;
    const later = (minutes: number) => new Date(Date.now() + minutes * 60_000);
    expect(await inMinutes()).toBeGreaterThan(14.9);
    expect(await inMinutes()).toBeLessThanOrEqual(15);
    expect(await inMinutes(later(60))).toBeLessThanOrEqual(15);
    expect(await inMinutes(later(2))).toBeGreaterThan(1.9);
    expect(await inMinutes(later(2))).toBeLessThanOrEqual(2);
  });

  it("is signed with what AWS's default chain finds", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIAOFTHECHAIN");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", KEYS.secretAccessKey);
    const { value } = await createDefaultMskSigner("eu-west-1")();
    vi.unstubAllEnvs();
    const url = new URL(Buffer.from(value, "base64url").toString());
    expect(url.hostname).toBe("kafka.eu-west-1.amazonaws.com");
    expect(url.searchParams.get("X-Amz-Credential")).toMatch(
      /^AKIAOFTHECHAIN\/\d{8}\/eu-west-1\/kafka-cluster\//,
    );
  });

  it.each([
    ["conversation-export", undefined],
    ["mine", "mine"],
  ])("of a service account's role names every session %s", async (name, given) => {
    const folder = mkdtempSync(join(tmpdir(), "msk-token-"));
    const tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "a.web.token");
    const names: (string | null)[] = [];
    const sts = createServer((request, response) => {
      let body = "";
      request
        .on("data", (part) => {
          body += String(part);
        })
        .on("end", () => {
          names.push(new URLSearchParams(body).get("RoleSessionName"));
          const end = new Date(Date.now() + (names.length === 1 ? 60_000 : 3_600_000)).toISOString();
          response.setHeader("content-type", "text/xml");
          response.end(
            `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
          );
        });
    });
    await new Promise<void>((resolve) => {
      sts.listen(0, "127.0.0.1", resolve);
    });
    vi.stubEnv("AWS_ENDPOINT_URL_STS", `http://127.0.0.1:${(sts.address() as AddressInfo).port}`);
    vi.stubEnv("AWS_WEB_IDENTITY_TOKEN_FILE", tokenFile);
    vi.stubEnv("AWS_ROLE_ARN", "arn:aws:iam::000000000000:role/export");
    vi.stubEnv("AWS_ROLE_SESSION_NAME", given);
    try {
      const signer = createDefaultMskSigner("eu-west-1");
      await signer();
      await signer();
      // The chain renews beside the answer.
      await expect.poll(() => names).toEqual([name, name]);
    } finally {
      vi.unstubAllEnvs();
      sts.closeAllConnections();
      sts.close();
      rmSync(folder, { recursive: true });
    }
  });

  it("may be asked for again while the agent of the pod is away", async () => {
    const agent = { AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://127.0.0.1:1/v1/credentials" };
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.AWS_CONTAINER_CREDENTIALS_FULL_URI);
    const signer = createDefaultMskSigner("eu-west-1", agent);
    await expect(signer()).rejects.toMatchObject({ code: "bus_token_away", retryable: true });
    vi.unstubAllEnvs();
  });

  it("may be asked for again after a first one, whatever AWS says", async () => {
    let isRefused = false;
    const signer = createMskSigner("eu-central-1", () =>
      isRefused
        ? Promise.reject(Object.assign(new Error("none found"), { name: "CredentialsProviderError" }))
        : Promise.resolve(KEYS),
    );
    await signer();
    isRefused = true;
    await expect(signer()).rejects.toMatchObject({ code: "bus_token_away", retryable: true });
  });

  it.each([
    "Throttling",
    "ThrottlingException",
    "IDPCommunicationErrorException",
  ])("may be asked for again after %s with the status 400", async (name) => {
    const signer = createMskSigner("eu-central-1", () =>
      Promise.reject(Object.assign(new Error("wait"), { name, $metadata: { httpStatusCode: 400 } })),
    );
    await expect(signer()).rejects.toMatchObject({ code: "bus_token_away", retryable: true });
  });

  it.each([
    ["credentials about to end", () => sign(new Date(Date.now() + 20_000)), "bus_token_away", true],
    [
      "no credentials at all",
      createMskSigner("eu-central-1", () =>
        Promise.reject(Object.assign(new Error("none found"), { name: "CredentialsProviderError" })),
      ),
      "bus_token",
      false,
    ],
    [
      "a role that AWS refuses",
      createMskSigner("eu-central-1", () =>
        Promise.reject(
          Object.assign(new Error("no"), { name: "AccessDenied", $metadata: { httpStatusCode: 403 } }),
        ),
      ),
      "bus_token",
      false,
    ],
    [
      "an STS that is away",
      createMskSigner("eu-central-1", () => Promise.reject(new Error("getaddrinfo ENOTFOUND"))),
      "bus_token_away",
      true,
    ],
  ])("is not made with %s", async (_what, signOne, code, retryable) => {
    await expect(signOne()).rejects.toMatchObject({ code, retryable });
  });
});
