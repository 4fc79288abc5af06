import { describe, expect, it } from "vitest";
import { quotaFinding } from "./quota-finding.ts";

describe("quotaFinding", () => {
  it.each([
    ["there is none", []],
    ["each client has its own", [{ name: "pages", byKey: true, ofTime: false }]],
  ])("is content when %s", (found, quotas) => {
    expect(quotaFinding(quotas)).toMatchObject({ state: "ok", found });
  });

  it.each([
    [{ byKey: false, ofTime: false }, /^all clients share pages$/],
    [{ byKey: true, ofTime: true }, /^pages has execution_time/],
    [{ byKey: false, ofTime: true }, /^all clients share pages; pages has execution_time/],
  ])("warns of a quota with %o", (quota, found) => {
    expect(quotaFinding([{ name: "pages", ...quota }])).toMatchObject({
      state: "warning",
      found: expect.stringMatching(found),
    });
  });
});
