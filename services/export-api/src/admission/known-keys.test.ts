import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createKnownKeys } from "./known-keys.ts";

it("knows what was loaded last, also while loading fails, and what look-ups found", async () => {
  const lines: string[] = [];
  const results: string[] = [];
  const answers = [["a", "b"], new Error("away"), new Error("away"), ["b", "c"]];
  const known = createKnownKeys({
    load: () => {
      const answer = answers.shift() ?? [];
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    log: createLogger({ service: "test", level: "warn", destination: { write: (line) => lines.push(line) } }),
    onLoad: (result) => results.push(result),
  });
  const which = (): string => ["a", "b", "c", "d"].filter((hash) => known.has(hash)).join("");
  expect(which()).toBe("");
  await known.refresh();
  expect(which()).toBe("ab");
  known.add("d");
  for (let failure = 0; failure < 2; failure++) await known.refresh();
  expect(which()).toBe("abd");
  expect(lines).toHaveLength(1);
  await known.refresh();
  expect(which()).toBe("bcd");
  known.remove("c");
  known.remove("d");
  expect(which()).toBe("b");
  expect(results).toEqual(["loaded", "failed", "failed", "loaded"]);
});
