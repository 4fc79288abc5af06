import { describe, expect, it } from "vitest";
import { type Environment, readKafkaServers } from "../index.ts";
import { problemsOf } from "./problems.fixture.ts";

const BROKERS = { KAFKA_BROKERS: "a:9092" };
const OAUTH = {
  KAFKA_SASL_MECHANISM: "oauthbearer",
  KAFKA_OAUTH_TOKEN_URL: "https://idp.example.com/token?tenant=one",
  KAFKA_OAUTH_CLIENT_ID: "export",
  KAFKA_OAUTH_CLIENT_SECRET: "hunter2",
};
const MSK = { KAFKA_TLS: "on", KAFKA_SASL_MECHANISM: "aws-msk-iam", KAFKA_AWS_REGION: "eu-central-1" };

const problems = (env: Environment): readonly string[] =>
  problemsOf(() => readKafkaServers({ ...BROKERS, ...env }));

describe("the login by a token", () => {
  it("needs an endpoint and a client, and may name more", () => {
    expect(readKafkaServers({ ...BROKERS, ...OAUTH }).sasl).toEqual({
      mechanism: "oauthbearer",
      endpoint: {
        url: OAUTH.KAFKA_OAUTH_TOKEN_URL,
        clientId: "export",
        clientSecret: "hunter2",
        clientAuth: "basic",
        parameters: {},
      },
      extensions: {},
    });
    const more = {
      KAFKA_OAUTH_CLIENT_AUTH: "post",
      KAFKA_OAUTH_SCOPE: "api://x/.default read",
      KAFKA_OAUTH_PARAMETERS: "audience=https%3A%2F%2Fkafka%2F%26&resource=r",
      KAFKA_OAUTH_EXTENSIONS: "logicalCluster=lkc-1&identityPoolId=pool-2",
    };
    expect(readKafkaServers({ ...BROKERS, ...OAUTH, ...more }).sasl).toMatchObject({
      endpoint: {
        clientAuth: "post",
        scope: "api://x/.default read",
        parameters: { audience: "https://kafka/&", resource: "r" },
      },
      extensions: { logicalCluster: "lkc-1", identityPoolId: "pool-2" },
    });
  });

  it("by AWS needs a region and TLS", () => {
    expect(readKafkaServers({ ...BROKERS, ...MSK }).sasl).toEqual({
      mechanism: "aws-msk-iam",
      region: "eu-central-1",
    });
  });

  it.each(["http://127.0.0.1:1/t", "http://localhost/t", "http://[::1]:1/t"])("goes to %s here", (url) => {
    expect(problems({ ...OAUTH, KAFKA_OAUTH_TOKEN_URL: url })).toEqual([]);
  });

  it("goes over plain http when told", () => {
    const url = "http://127.0.0.1.example.com/t";
    expect(problems({ ...OAUTH, KAFKA_OAUTH_TOKEN_URL: url })[0]).toContain("must begin with https://");
    expect(problems({ ...OAUTH, KAFKA_OAUTH_TOKEN_URL: url, KAFKA_OAUTH_PLAIN_HTTP: "on" })).toEqual([]);
  });

  const url = { ...OAUTH, KAFKA_OAUTH_TOKEN_URL: "" };
  it.each<[Environment, string]>([
    [
      { ...OAUTH, KAFKA_OAUTH_CLIENT_SECRET: "" },
      "KAFKA_OAUTH_CLIENT_SECRET: is required with KAFKA_SASL_MECHANISM=oauthbearer",
    ],
    [
      { ...OAUTH, KAFKA_OAUTH_CLIENT_SECRET: "hunter2\n" },
      "KAFKA_OAUTH_CLIENT_SECRET: must not hold a line break",
    ],
    [{ ...OAUTH, KAFKA_SASL_MECHANISM: "" }, "KAFKA_SASL_MECHANISM: is required with KAFKA_OAUTH_TOKEN_URL"],
    [
      { ...OAUTH, KAFKA_SASL_PASSWORD: "hunter2" },
      "KAFKA_SASL_PASSWORD: counts only with KAFKA_SASL_MECHANISM plain, ",
    ],
    [
      { ...OAUTH, KAFKA_AWS_REGION: "eu-west-1" },
      "KAFKA_AWS_REGION: counts only with KAFKA_SASL_MECHANISM aws-msk-iam",
    ],
    [
      { ...MSK, KAFKA_OAUTH_SCOPE: "x" },
      "KAFKA_OAUTH_SCOPE: counts only with KAFKA_SASL_MECHANISM oauthbearer",
    ],
    [{ ...MSK, KAFKA_TLS: "off" }, "KAFKA_TLS: must be on with KAFKA_SASL_MECHANISM=aws-msk-iam"],
    [{ ...MSK, KAFKA_AWS_REGION: "evil.example.com/" }, "KAFKA_AWS_REGION: must be a region"],
    [
      { ...url, KAFKA_OAUTH_TOKEN_URL: "https://a:hunter2@idp/t" },
      "KAFKA_OAUTH_TOKEN_URL: must be an https address without user",
    ],
    [{ ...url, KAFKA_OAUTH_TOKEN_URL: "ftp://idp/t" }, "KAFKA_OAUTH_TOKEN_URL: must be an https address"],
    [
      { ...OAUTH, KAFKA_OAUTH_PARAMETERS: "a=1&a=2" },
      "KAFKA_OAUTH_PARAMETERS: must be name=value&name=value",
    ],
    [
      { ...OAUTH, KAFKA_OAUTH_PARAMETERS: "audience" },
      "KAFKA_OAUTH_PARAMETERS: must be name=value&name=value",
    ],
    [{ ...OAUTH, KAFKA_OAUTH_PARAMETERS: "scope=x" }, "KAFKA_OAUTH_PARAMETERS: must not hold grant_type"],
    [
      { ...OAUTH, KAFKA_OAUTH_EXTENSIONS: "auth=x" },
      "KAFKA_OAUTH_EXTENSIONS: names must be letters other than auth",
    ],
    [{ ...OAUTH, KAFKA_OAUTH_EXTENSIONS: "a=x%01auth%3Dy" }, "KAFKA_OAUTH_EXTENSIONS: names must be letters"],
  ])("refuses %o", (env, problem) => {
    expect(problems(env).join("\n")).toContain(problem);
    expect(problems(env).join("\n")).not.toContain("hunter2");
  });
});
