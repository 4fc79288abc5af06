import { describe, expect, it } from "vitest";
import { busPositionOf } from "./bus-position.ts";
import type { BusHeaders } from "./headers.ts";

const placeWith = (headers: BusHeaders) =>
  busPositionOf({ topic: "conversations", partition: 2, offset: 17, headers });

describe("the place of a message", () => {
  it("is the one of the first arrival for a replay", () => {
    const headers = { "dl-partition": Buffer.from("0"), "dl-offset": Buffer.from("3") };
    expect(placeWith(headers)).toEqual({ partition: 0, offset: 3 });
  });

  it.each([
    {},
    { "dl-offset": "3" },
    { "dl-partition": "0" },
    { "dl-partition": "65536", "dl-offset": "3" },
    { "dl-partition": "-1", "dl-offset": "3" },
    { "dl-partition": "0", "dl-offset": "1e3" },
    { "dl-partition": "0", "dl-offset": null },
    { "dl-partition": ["0", "0"], "dl-offset": "3" },
    { "dl-partition": "0", "dl-offset": Buffer.from([0xff]) },
    { "dl-partition": "0", "dl-offset": "9999999999999999999" },
    { "dl-partition": "0", "dl-offset": String(2 ** 48) },
    { "dl-topic": "messages", "dl-partition": "0", "dl-offset": "1" },
  ])("is its own with %j", (headers) => {
    expect(placeWith(headers)).toEqual({ partition: 2, offset: 17 });
  });

  it("is taken up to the last offset of 48 bits", () => {
    const headers = {
      "dl-topic": "conversations",
      "dl-partition": "3",
      "dl-offset": String(2 ** 48 - 1),
    };
    expect(placeWith(headers)).toEqual({ partition: 3, offset: 2 ** 48 - 1 });
  });
});
