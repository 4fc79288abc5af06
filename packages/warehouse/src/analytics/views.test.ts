import { expect, it } from "vitest";
import { analyticsStatements } from "./views.ts";

const views = (knowsLogin: boolean): readonly string[] =>
  analyticsStatements("export", { cluster: null }, { knowsLogin }).filter((one) => /FROM export\./.test(one));

it("compares rows with who logged in, where the server tells", () => {
  for (const view of views(true)) {
    expect(view).toContain("authenticatedUser() != ''");
    expect(view).not.toContain("throwIf");
  }
});

it("refuses clients where the server does not say who logged in", () => {
  expect(views(false)).toHaveLength(4);
  for (const view of views(false)) {
    expect(view).toContain("throwIf(startsWith(currentUser(), 'client_'), ");
    expect(view).not.toMatch(/authenticatedUser\(/);
  }
});
