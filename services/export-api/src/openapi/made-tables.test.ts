import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  formatRateWindows,
  LEGACY_FIELDS,
  LEGACY_VERSIONS,
  type LegacyList,
} from "@conversation-export/domain";
import type { LimitName } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { REQUIRED } from "../config.fixture.ts";
import { readConfig } from "../config.ts";
import { ERRORS } from "../http/errors.ts";

const { rateLimits } = readConfig(REQUIRED);

const REQUESTS = {
  conversations: "conversations, their changes and legacy versions",
  messages: "messages, their changes and legacy versions",
  end_users: "end users and their changes",
  data_subject_request: "new erasure requests",
  data_subject_request_status: "the status and the list of erasure requests",
  sms_trigger: "SMS triggers",
} as const satisfies Record<LimitName, string>;

const code = (text: string): string => `\`${text}\``;

const addedFields = (list: LegacyList): string[] =>
  LEGACY_VERSIONS.map((version, at) => {
    const before = LEGACY_FIELDS[list][LEGACY_VERSIONS[at - 1] ?? version];
    const added = LEGACY_FIELDS[list][version].filter((field) => at === 0 || !before.includes(field));
    return added.length === 0 ? "–" : added.map(code).join(", ");
  });

/** By the name in the comment above each. */
const TABLES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  errors: [
    ["Status", "`type`", "When", "Header"],
    ...Object.values(ERRORS).map((error) => [
      String(error.status),
      code(error.type),
      error.description,
      "header" in error ? code(error.header) : "",
    ]),
  ],
  limits: [
    ["Limit", "Requests for", "Default"],
    ...Object.entries(REQUESTS).map(([name, requests]) => [
      code(name),
      requests,
      code(formatRateWindows(rateLimits[name as LimitName])),
    ]),
  ],
  fields: [
    ["", "v1", "v1.1 adds", "v1.2 adds"],
    ["conversations", ...addedFields("conversations")],
    ["messages", ...addedFields("messages")],
  ],
};

const MADE = /^(<!-- (\w+): written by make generate -->\n)(?:\|.*\n)*/gm;

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;

const withTables = (page: string): string =>
  page.replaceAll(MADE, (_, comment: string, name: string) => {
    const [head = [], ...rows] = TABLES[name] ?? [];
    return comment + line(head) + `|${"---|".repeat(head.length)}\n` + rows.map(line).join("");
  });

it.each([
  "errors-and-limits.md",
  "legacy-versions.md",
])("docs/%s has its tables as make generate writes them", async (page) => {
  const path = fileURLToPath(new URL(`../../../../docs/${page}`, import.meta.url));
  const text = readFileSync(path, "utf8");
  expect(text).toMatch(MADE);
  await expect(withTables(text)).toMatchFileSnapshot(path);
});
