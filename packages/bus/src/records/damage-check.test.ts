import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createDamageCheck } from "./damage-check.ts";

const WHERE = { topic: "t", partition: 0 };

it("takes the third fetch in a row for the last, place by place", async () => {
  const lines: { msg: string; offset: number }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) };
  const isLasting = createDamageCheck({ log: createLogger({ service: "test", level: "warn", destination }) });
  const other = { ...WHERE, partition: 1 };
  const answers: boolean[] = [];
  for (const [where, offset] of [
    [WHERE, 5],
    [WHERE, 5],
    [other, 5],
    [WHERE, 5],
    [WHERE, 5],
    [WHERE, 6],
    [WHERE, 5],
  ] as const) {
    answers.push(await isLasting(where, offset));
  }
  expect(answers).toEqual([false, false, false, true, false, false, false]);
  expect(lines).toHaveLength(7);
  expect(lines[0]).toMatchObject({
    msg: "a batch has a wrong checksum",
    topic: "t",
    partition: 0,
    offset: 5,
  });
});
