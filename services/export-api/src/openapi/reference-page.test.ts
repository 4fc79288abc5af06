import { createHash } from "node:crypto";
import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { createListReader, createTestApp } from "../http/app.fixture.ts";

/** Reads of the package that fail first. */
const failures = vi.hoisted(() => ({ left: 0 }));
vi.mock(import("node:fs/promises"), async (original) => {
  const actual = await original();
  const readFile = ((...given: Parameters<typeof actual.readFile>) =>
    failures.left-- > 0
      ? Promise.reject(new Error("it cannot be read"))
      : actual.readFile(...given)) as typeof actual.readFile;
  return { ...actual, readFile };
});

const { app } = createTestApp(createListReader({}).reader);
const get = (url: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") =>
  app.inject({ method, url, headers: { host: "export.example", ...headers } });

const PAGE = "/api/reference";
const SCRIPT = "/api/reference/scalar.js";

describe("the OpenAPI document", () => {
  it("is served without a key", async () => {
    const response = await get("/api/openapi.json");
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("application/json");
    expect(response.json()).toMatchObject({ openapi: "3.1.1" });
    expect((await get("/api/openapi.json", {}, "HEAD")).body).toBe("");
  });
});

describe("the reference page", () => {
  it("is served without a key, and nothing below it but its script", async () => {
    const page = await get(PAGE);
    expect(page.statusCode).toBe(200);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    const sources = [...page.body.matchAll(/\b(?:src|href)="([^"]*)"/g)].map(([, source]) => source);
    expect(sources).toEqual(["reference/scalar.js"]);
    expect(new URL(sources[0] ?? "", `http://export.example${PAGE}`).pathname).toBe(SCRIPT);
    const script = await get(SCRIPT);
    expect(script.statusCode).toBe(200);
    expect(script.headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(script.body).toContain("createApiReference");
    expect((await get(`${PAGE}/openapi.yaml`)).statusCode).toBe(404);
    expect((await get(PAGE, {}, "HEAD")).statusCode).toBe(200);
  });

  it("shows the document of this service, with dates as dates and not as patterns", async () => {
    const inline =
      /<script type="text\/javascript">([^]*?)<\/script>/.exec((await get(PAGE)).body)?.[1] ?? "";
    const asked: string[] = [];
    const { promise: shown, resolve: show } = Promise.withResolvers<string>();
    runInNewContext(inline, {
      fetch: async (address: string) => {
        const { href, pathname } = new URL(address, `http://export.example${PAGE}`);
        asked.push(href);
        const { body } = await get(pathname);
        return { text: () => Promise.resolve(body) };
      },
      Scalar: {
        createApiReference: (_: string, options: { sources: [{ content: object }] }) =>
          show(JSON.stringify(options.sources[0].content)),
      },
    });
    const text = await shown;
    expect(asked).toEqual(["http://export.example/api/openapi.json"]);
    const patterns = (document: string): string[] =>
      [...document.matchAll(/"pattern":"((?:[^"\\]|\\.)*)"/g)].map(([, pattern = ""]) => pattern);
    const given = patterns((await get("/api/openapi.json")).body);
    const kept = given.filter((pattern) => !pattern.includes(String.raw`\\d{4}-`));
    expect(kept.length).toBeLessThan(given.length);
    expect(patterns(text)).toEqual(kept);
    expect(text).toContain('"format":"date-time"');
  });

  it("names no other host", async () => {
    const { body } = await get(PAGE);
    expect(body).not.toMatch(/https?:|["']\/\//);
  });

  it("forbids the browser to load anything from elsewhere", async () => {
    const { headers, body } = await get(PAGE);
    const policy = String(headers["content-security-policy"]);
    const directives = new Map(
      policy.split("; ").map((directive) => {
        const [name = "", ...sources] = directive.split(" ");
        return [name, sources] as const;
      }),
    );
    expect(directives.get("default-src")).toEqual(["'none'"]);
    for (const [name, sources] of directives) {
      for (const source of sources) {
        expect(source, name).toMatch(/^(?:'none'|'self'|'sha256-[^']+'|'unsafe-inline'|data:)$/);
      }
    }
    const inline = /<script type="text\/javascript">([^]*?)<\/script>/.exec(body)?.[1] ?? "";
    const digest = createHash("sha256").update(inline).digest("base64");
    expect(directives.get("script-src")).toEqual(["'self'", `'sha256-${digest}'`]);
    expect(directives.get("connect-src")).toEqual(["'self'"]);
  });

  it("is compressed, and not sent again while it is the same", async () => {
    const plain = await get(SCRIPT);
    const zipped = await get(SCRIPT, { "accept-encoding": "gzip" });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.rawPayload)).toEqual(plain.rawPayload);
    const tag = String(plain.headers["etag"]);
    expect(tag).toMatch(/^W\/"[^"]+"$/);
    expect(zipped.headers["etag"]).toBe(tag);
    for (const known of [tag, tag.slice(2), `"other", ${tag}`, `W/"other",${tag.slice(2)}`, "*"]) {
      const again = await get(SCRIPT, { "if-none-match": known });
      expect([again.statusCode, again.body], known).toEqual([304, ""]);
    }
    const other = await get(SCRIPT, { "if-none-match": `"other", W/"one more"` });
    expect(other.statusCode).toBe(200);
  });

  it("reads its script again when that failed", async () => {
    const fresh = createTestApp(createListReader({}).reader).app;
    failures.left = 1;
    expect((await fresh.inject(SCRIPT)).statusCode).toBe(500);
    expect((await fresh.inject(SCRIPT)).statusCode).toBe(200);
  });

  it("does not mind an odd Host", async () => {
    expect((await get(PAGE, { host: "a b" })).statusCode).toBe(200);
  });

  it("has a policy of its own, which answers elsewhere do not have", async () => {
    expect((await get("/api/v2/export/messages")).headers["content-security-policy"]).toBe(
      "default-src 'none'; frame-ancestors 'none'",
    );
  });
});
