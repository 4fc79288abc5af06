import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_TYPES, type EventType, processEvent, REJECTION_REASONS } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";

const DOCS = join(import.meta.dirname, "../../docs");
const EXAMPLES = join(DOCS, "examples/events");
const page = readFileSync(join(DOCS, "events.md"), "utf8");
const TYPES: Readonly<Record<string, EventType>> = {
  conversations: "conversation.exported",
  messages: "message.exported",
  "end-users": "end_user.exported",
};
const position = { partition: 0, offset: 0 };

/** Head lines, an empty line, the value. */
const examples = globSync("*.txt", { cwd: EXAMPLES })
  .sort()
  .map((title) => {
    const [head = "", ...rest] = readFileSync(join(EXAMPLES, title), "utf8").split("\n\n");
    const lines = head.split("\n").map((line): [string, string] => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)];
    });
    const { topic = "", key = "", ...headers } = Object.fromEntries(lines);
    return { title, topic, key, headers, value: rest.join("\n\n") };
  })
  .filter(({ topic }) => topic in TYPES);

function firstCells(heading: string): string[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, cell = ""]) => cell);
}

describe("the messages of docs/examples/events", () => {
  it("show every type in both modes", () => {
    const shown = examples.map(({ topic, headers }) => `${topic} ${headers["content-type"]?.split(";")[0]}`);
    const modes = ["application/cloudevents+json", "application/json"];
    expect(shown.sort()).toEqual(
      Object.keys(TYPES)
        .flatMap((topic) => modes.map((mode) => `${topic} ${mode}`))
        .sort(),
    );
  });

  it.each(examples)("$title: is linked from the page", ({ title }) => {
    expect(page).toContain(`(examples/events/${title})`);
  });

  it.each(examples)("$title: is accepted, and no field is unknown", ({ topic, key, headers, value }) => {
    const type = TYPES[topic];
    if (type === undefined) throw new Error(`${topic} is no topic`);
    const outcome = processEvent({ text: value, headers, position }, type);
    expect(outcome).toMatchObject({ kind: "accepted", unknownFields: [] });
    if (outcome.kind !== "accepted") return;
    expect(key).toBe(`${outcome.record.clientId}:${outcome.record.id}`);
  });

  it.each(examples)("$title: is rejected by the topic of another type", ({ topic, headers, value }) => {
    const other = EVENT_TYPES.find((type) => type !== TYPES[topic]) ?? "message.exported";
    expect(processEvent({ text: value, headers, position }, other)).toMatchObject({
      kind: "rejected",
      reason: "unexpected_type",
    });
  });

  it("are read without a content type in structured mode", () => {
    const structured = examples.filter(({ value }) => value.includes('"specversion"'));
    for (const { topic, value } of structured) {
      const outcome = processEvent({ text: value, headers: {}, position }, TYPES[topic] ?? EVENT_TYPES[0]);
      expect(outcome.kind).toBe("accepted");
    }
    expect(structured).toHaveLength(3);
  });
});

describe("the tables of docs/events.md", () => {
  it("name the topics and their types", () => {
    const rows = [...page.matchAll(/^\| `([\w-]+)` \| `TOPIC_\w+` \| `([\w.]+)` /gm)];
    expect(Object.fromEntries(rows.map(([, topic, type]) => [topic, type]))).toEqual(TYPES);
  });

  it("name every reason for a rejection", () => {
    expect(firstCells("Rejected events").sort()).toEqual([...REJECTION_REASONS].sort());
  });

  const minimal: Readonly<Record<string, object>> = {
    "conversation.exported": { _id: "c", date_created: "2026-10-20T00:00:00Z" },
    "message.exported": { _id: "m", conversation_id: "c", date_created: "2026-10-20T00:00:00Z" },
    "end_user.exported": { end_user_id: "e", created_at: "2026-10-20T00:00:00Z" },
  };
  const attributes = {
    specversion: "1.0",
    id: "1",
    source: "/test",
    time: "2026-10-20T00:00:00Z",
    clientid: "acme",
  };

  it.each(EVENT_TYPES)("say what %s requires", (type) => {
    const outcomeOf = (event: object) =>
      processEvent({ text: JSON.stringify(event), headers: {}, position }, type);
    const event: Record<string, unknown> = { ...attributes, type, data: minimal[type] };
    expect(outcomeOf(event)).toMatchObject({ kind: "accepted" });

    const required = [...page.matchAll(/^\| `(\w+)` \| yes \|/gm)].map(([, name = ""]) => name);
    expect(required.sort()).toEqual([...Object.keys(attributes), "type"].sort());
    for (const name of required) {
      const { [name]: _, ...others } = event;
      expect(outcomeOf(others)).toMatchObject({ kind: "rejected", reason: "invalid_envelope" });
      expect(outcomeOf({ ...event, [name]: "" })).toMatchObject({ reason: "invalid_envelope" });
    }

    const record = (type.split(".")[0] ?? "").replace("_", " ");
    const cell = new RegExp(`^\\| ${record} \\| (.*) \\|$`, "m").exec(page)?.[1] ?? "";
    const fields = [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    expect(fields.sort()).toEqual(Object.keys(minimal[type] ?? {}).sort());
    for (const name of fields) {
      const { [name]: _, ...others } = minimal[type] as Record<string, unknown>;
      expect(outcomeOf({ ...event, data: others })).toMatchObject({ reason: "invalid_record" });
    }
  });
});
