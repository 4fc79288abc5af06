import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const TESTS = join(ROOT, "test");
const SUPPORT = join(ROOT, "test/conformance");

const SECTIONS = "1 2 2.1 2.2 2.3 2.4 2.5 4.1 4.2 4.3 4.4 4.5 4.6 5 7 8 9 Isolation".split(" ");
const ERROR_TYPES = [
  "bad_request",
  "unauthorized",
  "resource_not_found",
  "rate_limit_exceeded",
  "internal_server_error",
  "authorization_error",
  "duplicate_resource",
  "content_too_large",
  "unprocessable_content",
];
/** Where the specification allows null. */
const NULLABLE = new Set(
  [
    "end_user_id generated_topic_label generated_topic_v2_id generated_topic_v2_title generated_topic_v2_desc",
    "generated_topic_v2_parent_id last_agent_id last_agent_name used_coaching.id used_coaching.entity_name",
    "used_coaching.coaching_type used_coaching.coaching_instructions used_coaching.coaching_intent",
    "used_articles.url used_articles.source used_playbooks.playbook_execution_id used_playbooks.outcome_status",
    "used_mcp.tool_id used_mcp.connection_id used_mcp.connection_name used_mcp.tool_name used_mcp.outcome_status",
    "handoffs.name handoffs.handoff_id handoffs.outcome_status handoffs.reason_code handoffs.reasoning",
    "message.answer_id message.answer_title message.chatter_id message.link_was_clicked",
  ].flatMap((line) => line.split(" ")),
);
const ROW = /^\| ([^|]+) \| ([^|]+) \| ((?:`[\w-]+` `[^`]+`(?:, )?)+) \|$/;
const REFERENCE = /`([\w-]+)` `([^`]+)`/g;
const PLACEHOLDER = /%[sdi]/g;

type Reference = { readonly file: string; readonly title: string };
type Row = { readonly section: string; readonly rule: string; readonly tests: readonly Reference[] };

const page = readFileSync(join(ROOT, "docs/conformance-rules.md"), "utf8");
const table = (page.split("## Rules\n")[1]?.split("\n## ")[0] ?? "")
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2);

const departures = (
  page.split("## Where the service departs from the specification\n")[1]?.split("\n## ")[0] ?? ""
)
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .slice(1);

const toRow = (line: string): Row | undefined => {
  const [, section = "", rule = "", tests = ""] = ROW.exec(line) ?? [];
  if (section === "") return undefined;
  return {
    section,
    rule,
    tests: [...tests.matchAll(REFERENCE)].map(([, file = "", title = ""]) => ({ file, title })),
  };
};
const rows = table.map(toRow).filter((row) => row !== undefined);

const files = new Map(
  globSync("{e2e,faults}/*.test.ts", { cwd: TESTS }).map((path) => [
    basename(path, ".test.ts"),
    readFileSync(join(TESTS, path), "utf8"),
  ]),
);
const supportText = globSync("*.ts", { cwd: SUPPORT })
  .map((name) => readFileSync(join(SUPPORT, name), "utf8"))
  .join("\n");

const reported: Reference[] = departures
  .map((line) => line.split(" | ").at(-1) ?? "")
  .flatMap((cell) => [...cell.matchAll(REFERENCE)].map(([, file = "", title = ""]) => ({ file, title })));
const references = [...rows.flatMap(({ tests }) => tests), ...reported];

const titlesOf = (source: string): string[] => {
  const titles: string[] = [];
  const isIt = (callee: ts.Expression): boolean =>
    (ts.isIdentifier(callee) && callee.text === "it") ||
    (ts.isCallExpression(callee) && callee.expression.getText() === "it.each");
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isIt(node.expression)) {
      const [title] = node.arguments;
      if (title !== undefined && ts.isStringLiteralLike(title)) titles.push(title.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("file.ts", source, ts.ScriptTarget.Latest, true));
  return titles;
};
const titles = new Map([...files].map(([name, source]) => [name, titlesOf(source)]));

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Values of the placeholders; undefined: another template. */
const casesOf = (template: string, title: string): string[] | undefined => {
  if (template === title) return [];
  const parts = template.split(PLACEHOLDER).map(escape);
  return new RegExp(`^${parts.join("(.+?)")}$`).exec(title)?.slice(1);
};

/** A case's name must occur in the file or its data. */
const exists = ({ file, title }: Reference): boolean => {
  const data = `${files.get(file) ?? ""}\n${supportText}`;
  return (titles.get(file) ?? []).some((template) =>
    casesOf(template, title)?.every((one) => one.split(".").every((name) => hasName(data, name))),
  );
};
const hasName = (text: string, name: string): boolean =>
  text.includes(`"${name}"`) || new RegExp(`^\\s*${escape(name)}: [{[]`, "m").test(text);

describe("docs/conformance-rules.md", () => {
  it("has a table whose rows can all be read", () => {
    expect(table.filter((line) => toRow(line) === undefined)).toEqual([]);
    expect(rows.length).toBeGreaterThan(150);
  });

  it("has rules of every section, and no others", () => {
    expect([...new Set(rows.map(({ section }) => section))]).toEqual(SECTIONS);
  });

  it("names tests that exist", () => {
    expect(departures.length).toBeGreaterThan(8);
    expect(reported.length).toBeGreaterThan(departures.length);
    expect(references.filter((reference) => !exists(reference))).toEqual([]);
  });

  it("names every test that is there for it", () => {
    const missing = [...titles]
      .filter(([file]) => file.startsWith("conformance-"))
      .flatMap(([file, all]) => all.map((title) => ({ file, title })))
      .filter(
        ({ file, title }) =>
          !references.some((one) => one.file === file && casesOf(title, one.title) !== undefined),
      );
    expect(missing).toEqual([]);
  });

  it("has a row for every field that is tested", async () => {
    const url = pathToFileURL(join(SUPPORT, "record-rows.ts")).href;
    const made = (await import(url)) as Record<string, unknown>;
    const fieldsOf = (name: string): string[] => (made[name] as [string][]).map(([field]) => field);
    const wanted = [
      ...[...fieldsOf("CONVERSATION_ROWS"), "record_last_updated"].map(
        (name) => `conversation field ${name}`,
      ),
      ...Object.entries(made["ITEM_ROWS"] as Record<string, [string][]>).flatMap(([list, items]) =>
        items.map(([name]) => `item field ${list}.${name}`),
      ),
      ...fieldsOf("INTENT_ROWS").map((name) => `intent field ${name}`),
      ...[...fieldsOf("MESSAGE_ROWS"), "record_last_updated"].map((name) => `message field ${name}`),
      ...Object.keys(made["MESSAGE_SHAPES"] as object).map(
        (name) => `message_data of type ${name} leaves as it came`,
      ),
      ...fieldsOf("END_USER_ROWS").map((name) => `end user field ${name}`),
      ...fieldsOf("PROFILE_ROWS").map((name) => `profile field ${name}`),
    ];
    const named = new Set(rows.flatMap(({ tests }) => tests.map(({ title }) => title)));
    expect(wanted.filter((title) => !named.has(title))).toEqual([]);
  });

  it("lists the fields that leave as null though the specification types them without", async () => {
    const url = pathToFileURL(join(SUPPORT, "record-rows.ts")).href;
    const made = (await import(url)) as Record<string, unknown>;
    type Rows = [string, unknown, unknown][];
    const of = (table: Rows, prefix = ""): string[] =>
      table.filter(([, , empty]) => empty === null).map(([name]) => prefix + name);
    const fields = [
      ...of(made["CONVERSATION_ROWS"] as Rows),
      ...Object.entries(made["ITEM_ROWS"] as Record<string, Rows>).flatMap(([list, items]) =>
        of(items, `${list}.`),
      ),
      ...of(made["INTENT_ROWS"] as Rows, "intents."),
      ...of(made["MESSAGE_ROWS"] as Rows, "message."),
    ].filter((name) => !NULLABLE.has(name));
    expect(departures[0]).toContain(`[${fields.length} fields](#fields-that-may-be-null)`);
    const listed = page.split("### Fields that may be null\n")[1]?.split("\n## ")[0] ?? "";
    expect(new Set([...listed.matchAll(/`([^`]+)`/g)].map(([, name]) => name))).toEqual(
      new Set(fields.map((name) => name.replace("message.", ""))),
    );
  });

  it("has a row for every type of error", () => {
    const rules = rows.filter(({ section }) => section === "7").map(({ rule }) => rule);
    expect(ERROR_TYPES.filter((type) => !rules.some((rule) => rule.includes(`\`${type}\``)))).toEqual([]);
  });
});
