import { expect, it } from "vitest";
import { firstCommands } from "./runbook.ts";

it("the first commands of a runbook are those under See it", () => {
  expect(firstCommands("RedisAway")[0]).toBe("export-ops doctor");
  const [throttled, clients] = firstCommands("RequestsThrottled");
  expect(throttled).toMatch(/^kubectl .* \| grep '"status":429' \| grep -oE .* \| head$/);
  expect(clients).toBe("export-ops clients list");
});
