import { expect, it } from "vitest";
import { otherLengths } from "./windows-command.ts";

it("names the variable when all windows are of other lengths", () => {
  expect(otherLengths(3_600, [60, 600])).toBe(
    "there are no windows of 3600 seconds, only of 60, 600: set UPLOAD_WINDOW_SECONDS as the jobs service has it",
  );
  expect(otherLengths(3_600, [])).toBeNull();
  expect(otherLengths(3_600, [60, 3_600])).toBeNull();
});
