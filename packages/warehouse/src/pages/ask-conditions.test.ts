import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { createAskForConditions } from "./ask-conditions.ts";
import type { Candidates } from "./sql/identity-sql.ts";
import type { SendStatement } from "./page-statements.ts";

const CANDIDATES: Candidates = {
  kind: "conversation",
  id: "conversation_id",
  table: "conversations",
  range: "true",
  dates: "true",
};

/** Ends each whole answer. */
const WHOLE = '["whole",""]\n';

const entries = (count: number): string =>
  Array.from({ length: count }, (_, number) => `["since","4\\/acme\\/c\\/\\"${number}"]\n`).join("") + WHOLE;

const ask = async (
  answers: Readonly<Record<string, string>>,
  { known = 1, candidates = CANDIDATES }: { known?: number; candidates?: Candidates | null } = {},
) => {
  const asked: string[] = [];
  const names: unknown[] = [];
  const send: SendStatement = async ({ name, parameters }, open) => {
    asked.push(name);
    if (name === "pages.moved") names.push(parameters["names"]);
    return open(Readable.from([Buffer.from(answers[name] ?? "")]));
  };
  const { conditions: askForConditions } = createAskForConditions({
    send,
    isSharded: () => Promise.resolve(false),
    datesKnown: () => Promise.resolve(known),
  });
  const conditions = await askForConditions(candidates, { client: "acme" }, undefined);
  return { conditions, asked, names };
};

it("is content with one question where there is nothing, erased records or not", async () => {
  for (const [answer, hasErased] of [
    [WHOLE, false],
    [`["erased",""]\n${WHOLE}`, true],
  ] as const) {
    expect(await ask({ "pages.exceptions": answer })).toMatchObject({
      conditions: { hasMoved: false, hasErased },
      asked: ["pages.exceptions"],
    });
  }
});

it("asks about the records with entries since, unless they are many", async () => {
  const few = await ask({ "pages.exceptions": entries(2), "pages.moved": "0\n" });
  expect(few).toEqual({
    conditions: { hasMoved: false, hasErased: false, sharded: false },
    asked: ["pages.exceptions", "pages.moved"],
    names: [['4/acme/c/"0', '4/acme/c/"1']],
  });
  expect((await ask({ "pages.exceptions": entries(50), "pages.moved": "0\n" })).asked).toEqual([
    "pages.exceptions",
    "pages.moved",
  ]);
  const many = await ask({ "pages.exceptions": entries(51), "pages.conditions": "0\t0\n" });
  expect(many.asked).toEqual(["pages.exceptions", "pages.conditions"]);
});

it("puts no long names into an address", async () => {
  const named = (id: string): Promise<{ readonly asked: readonly string[] }> =>
    ask({
      "pages.exceptions": `["since","4\\/acme\\/c\\/${id}"]\n${WHOLE}`,
      "pages.moved": "0\n",
      "pages.conditions": "0\t0\n",
    });
  expect((await named("x".repeat(3_900))).asked).toEqual(["pages.exceptions", "pages.moved"]);
  expect((await named("x".repeat(4_000))).asked).toEqual(["pages.exceptions", "pages.conditions"]);
  expect((await named("é".repeat(700))).asked).toEqual(["pages.exceptions", "pages.conditions"]);
});

it("looks at the candidates where one may have several dates", async () => {
  const conditions = { hasMoved: true, hasErased: true };
  const answer = { "pages.conditions": "3\t1\n" };
  expect(await ask({ "pages.exceptions": `["moved",""]\n${WHOLE}`, ...answer })).toMatchObject({
    conditions,
    asked: ["pages.exceptions", "pages.conditions"],
  });
  expect(await ask({ "pages.exceptions": entries(1), "pages.moved": "1\n", ...answer })).toMatchObject({
    conditions,
    asked: ["pages.exceptions", "pages.moved", "pages.conditions"],
  });
});

it("has one question where nothing is known lately, and without candidates", async () => {
  for (const options of [{ known: 0 }, { candidates: null }])
    expect((await ask({ "pages.conditions": "0\t1\n" }, options)).asked).toEqual(["pages.conditions"]);
});

it("takes no answer that is cut off for one without rows", async () => {
  for (const answers of [
    {},
    { "pages.exceptions": '["erased",""]\n' },
    { "pages.exceptions": entries(2) },
    { "pages.exceptions": entries(2), "pages.moved": "\n" },
    { "pages.exceptions": `["moved",""]\n${WHOLE}` },
    { "pages.exceptions": `["moved",""]\n${WHOLE}`, "pages.conditions": "0\n" },
    { "pages.exceptions": `["moved",""]\n${WHOLE}`, "pages.conditions": "\\N\t0\n" },
    { "pages.exceptions": `["moved",""]\n${WHOLE}`, "pages.conditions": "1\t0\n\n1\t0\n1\t0\n" },
  ])
    await expect(ask(answers)).rejects.toMatchObject({ causeName: "UNEXPECTED_ANSWER", retryable: true });
});
