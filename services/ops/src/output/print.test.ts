import { expect, it } from "vitest";
import { renderTable } from "./print.ts";

it("pads columns to their widest cell and leaves no spaces at the end", () => {
  const table = renderTable(
    ["KEY", "LABEL"],
    [
      ["key_1", ""],
      ["k", "for the nightly copy"],
    ],
  );
  expect(table).toBe("KEY    LABEL\nkey_1\nk      for the nightly copy");
});

it("shows the heading when there is nothing", () => {
  expect(renderTable(["CLIENT", "STATE"], [])).toBe("CLIENT  STATE");
});

it("keeps each cell on its line, whatever it quotes", () => {
  const cell = "acme\nother  deleted\tyes\r\u2028\u001b[2J";
  const shown = String.raw`acme\nother  deleted\tyes\u000d\u2028\u001b[2J`;
  const table = renderTable(["CLIENT", "STATE"], [[cell, "active"]]);
  expect(table).toBe(`CLIENT${" ".repeat(shown.length - 4)}STATE\n${shown}  active`);
});
