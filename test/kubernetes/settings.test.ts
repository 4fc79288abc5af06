import { expect, it } from "vitest";
import { parseImage, readSettings, referenceOf } from "./settings.ts";

it("an image has a registry, a name and a tag", () => {
  const image = {
    registry: "registry.example.com:5000/platform",
    repository: "conversation-export",
    tag: "0.1.0",
  };
  expect(parseImage("registry.example.com:5000/platform/conversation-export:0.1.0")).toEqual(image);
  expect(referenceOf(image)).toBe("registry.example.com:5000/platform/conversation-export:0.1.0");
  for (const wrong of ["conversation-export:0.1.0", "registry.example.com/conversation-export"])
    expect(() => parseImage(wrong)).toThrow(`IMAGE=${wrong} is not of the form registry/name:tag`);
});

it("the way of the image into the nodes must be said", () => {
  expect(() => readSettings({})).toThrow(/how does the image get into the nodes.*kind load image-archive/s);
  expect(readSettings({ IMAGE: "registry.example.com/export:1" })).toEqual({
    image: { registry: "registry.example.com", repository: "export", tag: "1" },
    load: null,
    host: null,
    groups: ["network", "upgrades", "deaths", "hangs", "moves", "outage"],
  });
  expect(
    readSettings({ IMAGE: "registry.example.com/export:1", STEPS: "outage,other-alerts" }).groups,
  ).toEqual(["other-alerts", "outage"]);
  expect(() => readSettings({ IMAGE: "registry.example.com/export:1", STEPS: "floods" })).toThrow(
    "floods is none of",
  );
});
