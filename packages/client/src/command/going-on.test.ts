import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type Answer, error, lines, raw } from "../http/test-server.fixture.ts";
import { usePlace } from "./command.fixture.ts";
import { inDuckDb } from "./duckdb.fixture.ts";
import { beginFirstPass, changes, WATERMARK } from "./service.fixture.ts";

const place = usePlace();
const { folder, command } = place;
const file = (): string => join(place.root, "copy.duckdb");
const pullInto = (to: string, ...args: string[]) =>
  command(["pull", "--to", to, "--list", "conversations", "--file-bytes", "1", ...args]);
const pull = (...args: string[]) => pullInto(folder(), ...args);

const storedIds = (): string[] =>
  readdirSync(join(folder(), "conversations"))
    .toSorted()
    .flatMap((name) =>
      readFileSync(join(folder(), "conversations", name), "utf8")
        .trimEnd()
        .split("\n"),
    )
    .map((line) => (JSON.parse(line) as { _id: string })._id);

const dated = (...ids: string[]) =>
  ids.map((_id, at) => ({ _id, date_created: `2026-10-04T00:00:0${at}.000000+00:00`, csat: 1 }));
const expired = error(410, "resource_not_found");
const unauthorized = error(401, "unauthorized");
const answer = (...answers: Answer[]): void => place.service.next(...answers);

describe("a long catch-up", () => {
  it("goes on behind the portions that it has stored", async () => {
    const since = ["--since", "2026-10-04T12:00:00Z"];
    answer(changes(dated("a", "b"), "1", false), changes(dated("c"), "2", false), unauthorized);
    expect(await pull(...since)).toMatchObject({ code: 3 });
    expect(storedIds()).toEqual(["a", "b", "c"]);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 6 });
    answer(changes(dated("d"), "3"));
    expect(await pull(...since)).toMatchObject({
      code: 0,
      out: expect.stringContaining("records received: 1,"),
    });
    expect(place.service.server.asked.at(-1)).toContain("cursor=2&");
    expect(storedIds()).toEqual(["a", "b", "c", "d"]);
  });

  it("keeps the texts of the service", async () => {
    const record = '{"_id":"a","csat":{"n":12345678901234567890,"t":"a,]}\\"{"}}';
    const page = `{"data":[${record},{"_id":"b"}],"meta":{"next_cursor":"1","end_of_stream":true}}`;
    answer(raw(200, "application/json", page));
    await pull("--since", "2026-10-04T12:00:00Z");
    const name = join(folder(), "conversations/00000001.ndjson");
    expect(readFileSync(name, "utf8")).toBe(`${record}\n{"_id":"b"}\n`);
  });

  it("asks for smaller pages where records are large", async () => {
    const tooLong = raw(200, "application/json", " ".repeat(17 * 1024 * 1024));
    const large = [{ _id: "a", csat: "x".repeat(5 * 1024 * 1024) }];
    answer(tooLong, tooLong, changes(large, "1", false), changes(dated("b"), "2", false), changes([], "3"));
    expect(await pull("--since", "2026-10-04T12:00:00Z")).toMatchObject({ code: 0 });
    expect(storedIds()).toEqual(["a", "b"]);
    const asked = place.service.server.asked.map((path) => new URL(path, "http://x").searchParams);
    expect(asked.map((query) => [query.get("cursor"), query.get("page_size")])).toEqual([
      [null, "5000"],
      [null, "2500"],
      [null, "1250"],
      ["1", "1250"],
      ["2", "2500"],
    ]);
  });

  it("leaves no file when nothing came", async () => {
    place.service.put("a", 1);
    await pull();
    await pull();
    await pull();
    expect(storedIds()).toEqual(["a"]);
  });

  it("is not asked for more than eight times when connections break", async () => {
    await pull();
    const asked = place.service.server.asked.length;
    const breaks: Answer = (response) => response.destroy();
    answer(...Array.from({ length: 100 }, () => breaks));
    // No waits between attempts.
    const random = vi.spyOn(Math, "random").mockReturnValue(0);
    try {
      expect(await pull()).toMatchObject({ code: 4 });
    } finally {
      random.mockRestore();
    }
    expect(place.service.server.asked).toHaveLength(asked + 8);
  });
});

describe("a first pass", () => {
  it("is not gone on with by the key of another client", async () => {
    answer(...beginFirstPass(), lines(dated("a", "b"), "broken"), unauthorized);
    expect(await pull()).toMatchObject({ code: 3 });
    const before = readFileSync(join(folder(), "state.json"), "utf8");
    const asked = place.service.server.asked.length;
    answer(error(400, "bad_request", {}, "cursor: is not of this client"));
    expect(await pull()).toMatchObject({ code: 3, err: expect.stringContaining("cursor") });
    expect(place.service.server.asked).toHaveLength(asked + 1);
    expect(place.service.server.asked.at(-1)).toContain("/changes/conversations?cursor=");
    expect(readFileSync(join(folder(), "state.json"), "utf8")).toBe(before);
  });
});

describe("a copy whose cursor has expired", () => {
  it("stays until the new one is complete, in a folder", async () => {
    place.service.put("a", 1);
    place.service.put("b", 1);
    await pull();
    place.service.remove("a");
    place.service.put("c", 1);
    answer(expired, ...beginFirstPass(), lines(dated("b"), "broken"), unauthorized);
    expect(await pull()).toMatchObject({ code: 3 });
    const state = JSON.parse(readFileSync(join(folder(), "state.json"), "utf8")) as {
      lists: { conversations: { segments: { file: string }[] } };
    };
    const old = state.lists.conversations.segments.map((one) => one.file);
    const texts = old.map((name) => readFileSync(join(folder(), name), "utf8"));
    expect(texts.join("").match(/"_id":"\w"/g)).toEqual(['"_id":"a"', '"_id":"b"']);
    expect(await pull()).toMatchObject({ code: 0 });
    expect([...new Set(storedIds())].toSorted()).toEqual(["b", "c"]);
    expect(await command(["verify", "--to", folder()])).toMatchObject({ code: 0 });
  });

  it("stays until the new one is complete, in DuckDB", async () => {
    const to = `duckdb:${file()}`;
    const ids = async (): Promise<unknown> =>
      (await inDuckDb(file(), "SELECT _id FROM conversations ORDER BY _id")).flat();
    place.service.put("a", 1);
    place.service.put("b", 1);
    await pullInto(to);
    place.service.remove("a");
    place.service.put("c", 1);
    answer(expired, ...beginFirstPass(), lines(dated("b"), "broken"), unauthorized);
    expect(await pullInto(to)).toMatchObject({ code: 3 });
    expect(await ids()).toEqual(["a", "b"]);
    expect(await pullInto(to)).toMatchObject({ code: 0 });
    expect(await ids()).toEqual(["b", "c"]);
    expect(await command(["verify", "--to", to])).toMatchObject({ code: 0 });
  });

  it("is made afresh once a run, and it says so", async () => {
    place.service.put("a", 1);
    await pull();
    answer(expired);
    expect(await pull()).toMatchObject({ code: 0, out: expect.stringContaining("made afresh") });
    answer(expired, ...beginFirstPass(), lines(dated("a"), { count: 1, watermark: WATERMARK }), expired);
    expect(await pull()).toMatchObject({ code: 3 });
    expect(await pull()).toMatchObject({ code: 0 });
    expect(storedIds()).toEqual(["a"]);
  });

  it("is left alone when a proxy says 410", async () => {
    place.service.put("a", 1);
    await pull();
    answer(raw(410, "text/plain", "gone"));
    expect(await pull()).toMatchObject({ code: 3 });
    expect(storedIds()).toEqual(["a"]);
  });

  it("is reported where lines cannot be taken back", async () => {
    const args = ["--state", join(place.root, "cursor.json")];
    place.service.put("a", 1);
    await pullInto("-", ...args);
    answer(expired);
    expect(await pullInto("-", ...args)).toMatchObject({
      code: 3,
      out: "",
      err: expect.stringContaining("empty what you keep, remove the state file"),
    });
  });
});
