import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Endpoint } from "../operations/endpoint.ts";
import { serve } from "./json-body.fixture.ts";
import { checkBody, MAX_BODY_BYTES, MAX_BODY_VALUES, readJsonBody, sendJson } from "./json-body.ts";

const schema = z.strictObject({ name: z.string(), inner: z.strictObject({ size: z.number() }).optional() });

const endpointsWith = (onRead: (size: number) => void = () => undefined): Endpoint[] =>
  (["raw", "checked"] as const).map((name) => ({
    method: "POST",
    paths: [`/${name}`],
    scope: "export",
    limit: "messages",
    slot: "body",
    description: { operationId: name, summary: "", tag: "Export", text: "", success: { description: "" } },
    serve: async ({ request, reply }) => {
      request.raw.on("data", (chunk: Buffer) => onRead(chunk.length));
      const value = await readJsonBody(request.raw);
      sendJson(reply, 200, name === "raw" ? { value: typeof value } : checkBody(schema, value));
    },
  }));

type RawAnswer = { status: number; connection: string | undefined; body: string };

/** Without Content-Length unless given. */
const sendChunks = (
  port: number,
  chunks: Iterable<Buffer>,
  headers: Record<string, string> = {},
): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        port,
        host: "127.0.0.1",
        path: "/raw",
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
      },
      (response) => {
        text(response)
          .then((body) =>
            resolve({ status: response.statusCode ?? 0, connection: response.headers.connection, body }),
          )
          .catch(reject);
      },
    );
    sent.on("error", reject);
    const iterator = chunks[Symbol.iterator]();
    const next = (): void => {
      const { value, done } = iterator.next();
      if (done === true) sent.end();
      else if (sent.write(value)) setImmediate(next);
      else sent.once("drain", next);
    };
    next();
  });

describe("readJsonBody", () => {
  it.each([
    ["application/json"],
    ["Application/JSON; charset=UTF-8"],
    ['application/json;charset="utf-8"'],
    ["application/json ; charset = utf-8 "],
  ])("takes %s", async (type) => {
    const { post } = await serve(endpointsWith());
    expect(await post("/raw", "{}", { headers: { "content-type": type } })).toMatchObject({ status: 200 });
  });

  it.each([
    ["text/plain", "Content-Type"],
    ["application/json; charset=latin1", "Content-Type"],
    ["application/jsonp", "Content-Type"],
    ["application/x-www-form-urlencoded", "Content-Type"],
    ["application/merge-patch+json", "Content-Type"],
  ])("answers %s with 415", async (type, name) => {
    const { post } = await serve(endpointsWith());
    const answer = await post("/raw", "{}", { headers: { "content-type": type } });
    expect(answer).toMatchObject({ status: 415, body: { errors: [{ type: "bad_request" }] } });
    expect(answer.details).toContain(name);
  });

  it("answers a content coding, or no type at all, with 415", async () => {
    const { post, url } = await serve(endpointsWith());
    const coded = await post("/raw", "{}", { headers: { "content-encoding": "gzip" } });
    expect(coded).toMatchObject({ status: 415, details: expect.stringContaining("Content-Encoding") });
    expect(await post("/raw", "{}", { headers: { "content-encoding": "identity" } })).toMatchObject({
      status: 200,
    });
    const untyped = await fetch(`${url}/raw`, { method: "POST", body: Buffer.from("{}") });
    expect(untyped.status).toBe(415);
  });

  it.each([
    ["nothing", "", "body: is required"],
    ["half an object", '{"a":', "body: is not JSON"],
    ["two values", "{} {}", "body: is not JSON"],
    ["a name for the prototype", '{"a":[{"b":{"__proto__":{"x":1}}}]}', "__proto__ is not allowed"],
    ["a field given twice", '{"a":1,"b":[{},{"c":"x","\\u0063":"y"}]}', "b.1.c: is given twice"],
    [
      "repeated fields within what is not read",
      `${"[".repeat(90_000)}{"a":1,"a":2}${"]".repeat(90_000)}`,
      "is given twice",
    ],
    ["the same name escaped", '{"\\u005f_proto_\\u005F":{"x":1}}', "__proto__ is not allowed"],
    ["the same name escaped wholly", '{"\\u005f\\u005fproto\\u005f\\u005f":1}', "__proto__ is not allowed"],
  ])("answers %s with 400", async (_name, body, details) => {
    const { post } = await serve(endpointsWith());
    expect(await post("/raw", body)).toMatchObject({
      status: 400,
      body: { errors: [{ type: "bad_request" }] },
      details: expect.stringContaining(details),
    });
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("answers bytes that are not UTF-8 with 400", async () => {
    const { url } = await serve(endpointsWith());
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const answer = await fetch(`${url}/raw`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("body: is not UTF-8");
  });

  it.each([
    ["elements", `[${"1,".repeat(MAX_BODY_VALUES)}1]`],
    ["lists", "[".repeat(MAX_BODY_VALUES + 1)],
    ["objects", '{"a":'.repeat(MAX_BODY_VALUES + 1)],
    ["commas in a text", `{"name":"${",".repeat(MAX_BODY_VALUES)}"}`],
  ])("answers too many %s with 400, whether they are JSON or not", async (_name, body) => {
    const { post } = await serve(endpointsWith());
    expect(await post("/raw", body)).toMatchObject({ status: 400, details: "body: has too many values" });
  });

  it("reads a name that is escaped as it is, whatever names came before", async () => {
    const { post } = await serve(
      endpointsWith().map((endpoint) => ({
        ...endpoint,
        serve: async ({ request, reply }) =>
          sendJson(reply, 200, Object.keys((await readJsonBody(request.raw)) as object)),
      })),
    );
    const names: unknown[] = [];
    for (const name of ["\\\\", "\\u540d", '\\"', "caf\\\\", "caf\\u00e9"]) {
      const { body } = await post("/raw", `{"phone":"+1","${name}":"x"}`);
      names.push(body);
    }
    expect(names).toEqual(["\\", "名", '"', "caf\\", "café"].map((name) => ["phone", name]));
  });

  it("survives nesting of any depth", async () => {
    const { post } = await serve(endpointsWith());
    const depth = MAX_BODY_VALUES - 1;
    expect(await post("/raw", "[".repeat(depth) + "]".repeat(depth))).toMatchObject({ status: 200 });
    const objects = '{"a_":'.repeat(depth);
    expect(await post("/raw", `${objects}1${"}".repeat(depth)}`)).toMatchObject({ status: 200 });
    expect(await post("/raw", "[".repeat(depth))).toMatchObject({ status: 400 });
    expect(await post("/checked", `{"name":${"[".repeat(depth)}${"]".repeat(depth)}}`)).toMatchObject({
      status: 400,
      details: "name: must be a string",
    });
  });

  it("takes exactly the limit", async () => {
    const { port } = await serve(endpointsWith());
    const body = Buffer.from(JSON.stringify("x".repeat(MAX_BODY_BYTES - 2)));
    expect(body).toHaveLength(MAX_BODY_BYTES);
    expect(await sendChunks(port, [body])).toMatchObject({ status: 200 });
    expect(await sendChunks(port, [body, Buffer.from(" ")])).toMatchObject({ status: 413 });
  });

  it("refuses by the announced length before it reads", async () => {
    let read = 0;
    const { port } = await serve(endpointsWith((size) => (read += size)));
    const length = String(MAX_BODY_BYTES + 1);
    const answer = await sendChunks(port, [Buffer.alloc(1_000, " ")], { "content-length": length });
    expect(answer).toMatchObject({ status: 413, connection: "close" });
    expect(answer.body).toContain("content_too_large");
    expect(answer.body).toContain(`limit: ${MAX_BODY_BYTES} bytes; actual length: ${length} bytes`);
    expect(read).toBeLessThanOrEqual(1_000);
  });

  it("refuses an endless body at the limit", async () => {
    const { port } = await serve(endpointsWith());
    function* endless(): Iterable<Buffer> {
      for (;;) yield Buffer.alloc(65_536, " ");
    }
    const answer = await sendChunks(port, endless());
    expect(answer).toMatchObject({ status: 413, connection: "close" });
    expect(answer.body).toMatch(/actual length: 4\d{6} bytes/);
  });

  it("lets a client see the refusal that reads only when it has sent everything", async () => {
    const { port } = await serve(endpointsWith());
    const body = Buffer.alloc(2 * MAX_BODY_BYTES, " ");
    const head = "POST /raw HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    for (const [length, bytes] of [
      [`content-length: ${body.length}`, body],
      [
        "transfer-encoding: chunked",
        Buffer.concat([Buffer.from("7a1200\r\n"), body, Buffer.from("\r\n0\r\n\r\n")]),
      ],
    ] as const) {
      const socket = connect(port, "127.0.0.1").pause();
      await promisify<Buffer>(socket.write.bind(socket))(
        Buffer.concat([Buffer.from(`${head}${length}\r\n\r\n`), bytes]),
      );
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 /);
    }
  });

  it("closes the connection of a refused body", async () => {
    const { port } = await serve(endpointsWith());
    const socket = connect(port, "127.0.0.1");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(
      `POST /raw HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n{`,
    );
    await expect(closed).resolves.toBeDefined();
  });

  it("lets a body break off", async () => {
    const ends: unknown[] = [];
    const { port } = await serve([
      {
        ...(endpointsWith()[0] as Endpoint),
        serve: async ({ request }) => {
          await readJsonBody(request.raw).catch((error: unknown) => ends.push(error));
        },
      },
    ]);
    const socket = connect(port, "127.0.0.1");
    socket.write(
      `POST /raw HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{`,
      () => socket.destroy(),
    );
    await expect.poll(() => ends).toHaveLength(1);
    expect(ends[0]).toMatchObject({ answer: { status: 400, details: "body: broke off before its end" } });
  });
});

describe("checkBody", () => {
  it("names every wrong, missing and unknown field, and no value", async () => {
    const { post } = await serve(endpointsWith());
    const answer = await post("/checked", {
      name: 7,
      other: "secret-1",
      inner: { size: "secret-2", colour: 1 },
    });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ type: "bad_request" }] } });
    expect(answer.details.split("; ").sort()).toEqual([
      "inner.colour: unknown field",
      "inner.size: must be a number",
      "name: must be a string",
      "other: unknown field",
    ]);
    expect(JSON.stringify(answer.body)).not.toContain("secret");
    expect(await post("/checked", "[]")).toMatchObject({ status: 400, details: "body: must be an object" });
    expect(await post("/checked", "{}")).toMatchObject({ status: 400, details: "name: is required" });
  });

  it("keeps what it says short", async () => {
    const { post } = await serve(endpointsWith());
    const many = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, at) => [`f${at}${"x".repeat(500)}`, 1]),
    );
    const { details } = await post("/checked", { name: "a", ...many });
    expect(details).toContain("f0xxx");
    expect(details).toContain("… and 4980 more");
    expect(details.length).toBeLessThan(5_000);
  });
});
