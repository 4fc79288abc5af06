import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createApproval } from "./approval.ts";

const RUN = { id: "run", erases: false };

/** Of 1,000 records; more than 10 are too many. */
const holdOf = async (percent: number, reaches: Readonly<Record<string, number>>): Promise<string[]> => {
  const held: string[] = [];
  const approval = createApproval({
    requests: {
      reaching: (_, __, above) =>
        Promise.resolve(
          Object.entries(reaches)
            .map(([requestId, records]) => ({ requestId, records }))
            .filter(({ records }) => records > above),
        ),
      hold: (_, id) => {
        held.push(id);
        return Promise.resolve();
      },
    },
    store: { storedRecords: () => Promise.resolve(1_000) },
    rule: { percent, records: 10 },
    log: createLogger({ service: "test", level: "silent" }),
  });
  expect(await approval(RUN, "acme")).toBe(held.length);
  return held;
};

it("lets requests wait that reach more than a number and a share of the records, each by itself", async () => {
  const reaches = { none: 0, ten: 10, eleven: 11, twenty: 20, "twenty-one": 21 };
  expect(await holdOf(1, reaches)).toEqual(["eleven", "twenty", "twenty-one"]);
  expect(await holdOf(2, reaches)).toEqual(["twenty-one"]);
  expect(await holdOf(2, { one: 10, other: 10, third: 10 })).toEqual([]);
});
