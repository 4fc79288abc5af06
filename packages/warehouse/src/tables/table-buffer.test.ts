import { expect, it } from "vitest";
import { createTableBuffer } from "./table-buffer.ts";

const instants = (body: Buffer): number[] =>
  Array.from({ length: body.length / 8 }, (_, at) => Number(body.readBigUInt64LE(at * 8)));

it("gives each row an instant of storing of its own, all from the instant of upload that was set last", () => {
  const table = createTableBuffer("changes", ["stored_at", "uploaded_at"], 1);
  const add = (): void => {
    table.storedAt();
    table.uploadedAt();
    table.endRow();
  };
  add();
  add();
  add();
  table.fillUpload(900);
  table.fillUpload(100);
  expect(instants(table.row.view(0, table.row.length))).toEqual([100, 100, 101, 100, 102, 100]);
  expect(instants(table.row.view(table.startOf(1), table.startOf(2)))).toEqual([101, 100]);
  table.clear();
  add();
  table.fillUpload(500);
  expect(instants(table.row.view(0, table.row.length))).toEqual([500, 500]);
});
