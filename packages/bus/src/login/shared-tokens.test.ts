import { describe, expect, it } from "vitest";
import { type TokenLogin, tokensOf } from "./shared-tokens.ts";

const login = (clientSecret = "one", extensions = {}): TokenLogin => ({
  mechanism: "oauthbearer",
  endpoint: {
    url: "https://idp/token",
    clientId: "export",
    clientSecret,
    clientAuth: "basic",
    parameters: {},
  },
  extensions,
});

describe("the tokens of a process", () => {
  it("are the same for all clients with one login, and others for another", () => {
    const tokens = tokensOf(login());
    expect(tokensOf(login())).toBe(tokens);
    expect(tokensOf(login("two"))).not.toBe(tokens);
    expect(tokensOf(login(), "another authority")).not.toBe(tokens);
    expect(tokensOf({ mechanism: "aws-msk-iam", region: "eu-central-1" })).not.toBe(tokens);
  });
});
