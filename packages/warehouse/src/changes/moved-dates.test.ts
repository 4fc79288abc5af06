import { expect, it } from "vitest";
import type { Session } from "../session/session.ts";
import { createMovedDates } from "./moved-dates.ts";

it("goes on with a look at all records where it broke off, but not when another has ended it meanwhile", async () => {
  let known = 0;
  let isAway = false;
  const begins: unknown[] = [];
  const session = {
    with: () => session,
    rows: (name: string, _: string, options?: { readonly parameters: { readonly after: string } }) => {
      if (name === "moved.known") return Promise.resolve([{ micros: String(known) }]);
      return Promise.resolve(options?.parameters.after === "" ? [{ last: "middle" }] : []);
    },
    command: (
      _: string,
      __: string,
      { parameters }: { readonly parameters: { readonly after?: string } },
    ) => {
      begins.push(parameters.after);
      return isAway && parameters.after !== "" ? Promise.reject(new Error("away")) : Promise.resolve();
    },
    insert: () => Promise.resolve(),
  };
  const dates = createMovedDates({ session: session as unknown as Session });

  isAway = true;
  await expect(dates.note(1_000)).rejects.toThrow("away");
  await expect(dates.note(1_000)).rejects.toThrow("away");
  expect(begins).toEqual(["", "middle", "middle"]);

  known = 1_000;
  await dates.note(1_000);
  known = 0;
  isAway = false;
  await dates.note(1_000);
  expect(begins.slice(3)).toEqual(["", "middle"]);
});
