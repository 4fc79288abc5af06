import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { type LogMessage, readLogFields, readLogMessages } from "./log-sources.ts";

const PAGE = fileURLToPath(new URL("../../docs/logs.md", import.meta.url));
const messages = readLogMessages();
const fields = readLogFields();

const documentedFields = [
  ...(/^## Fields\n([\s\S]*?)^## /m.exec(readFileSync(PAGE, "utf8"))?.[1] ?? "").matchAll(
    /^\| (`[^|]+) \|/gm,
  ),
].flatMap(([, cell = ""]) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
const PERSONAL =
  /^(email|phone|address|ip|remoteAddress|url|query|body|payload|value|record|event|text|name|user|key|headers|authorization)$/i;

const documented = [...readFileSync(PAGE, "utf8").matchAll(/^\| (`".*?"`) \| (\w+) \|/gm)].flatMap(
  ([, cell = "", level = ""]) =>
    [...cell.matchAll(/`"(.+?)"`/g)].map(([, text = ""]) => ({ level, text: text.replace(/…$/, "") })),
);

const says =
  ({ level, text }: { level: string; text: string }) =>
  (message: LogMessage): boolean =>
    message.text === text && message.level === level;

it("docs/logs.md names messages as the sources log them", () => {
  expect(documented.length).toBeGreaterThan(50);
  expect(documented.filter((one) => !messages.some(says(one)))).toEqual([]);
});

it("docs/logs.md leaves out no message of level warn or above", () => {
  const missing = messages.filter(
    ({ level, text }) =>
      level !== "info" && !documented.some((one) => one.level === level && one.text === text),
  );
  expect(missing).toEqual([]);
});

it("docs/logs.md has every field that the sources write", () => {
  expect(fields.length).toBeGreaterThan(80);
  expect(fields.filter(({ field }) => !documentedFields.includes(field))).toEqual([]);
});

it("no line has a field for what a person is known by, or for what records and requests carry", () => {
  expect(fields.filter(({ field }) => PERSONAL.test(field))).toEqual([]);
});
