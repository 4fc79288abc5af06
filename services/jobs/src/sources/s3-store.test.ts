import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createS3Store } from "./s3-store.ts";

let server: Server;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let requests: { url: string; range: string | undefined }[] = [];
const signal = new AbortController().signal;

beforeEach(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  requests = [];
  server = createServer((request, response) => {
    requests.push({ url: request.url ?? "", range: request.headers.range });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const storeOf = () =>
  createS3Store({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: null,
  });
const file = (size: number) => ({ location: "s3://in/day/a.ndjson", size, tag: '"v1"' });
const refuse = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`);
};
const readAll = async (size: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of storeOf().open(file(size), signal)) chunks.push(chunk);
  return Buffer.concat(chunks);
};

it("lists what has lines below a prefix, over several answers, and the object that is named", async () => {
  const entry = (key: string): string =>
    `<Contents><Key>${key}</Key><Size>5</Size><ETag>&quot;t&quot;</ETag></Contents>`;
  answer = (request, response) => {
    const next = (request.url ?? "").includes("continuation-token=more");
    const keys = next ? ["day/a.json.gz", "day/.b.json"] : ["day/", "day/z.ndjson", "day/readme.txt", "day"];
    response.writeHead(200, { "content-type": "application/xml" });
    response.end(
      `<?xml version="1.0"?><ListBucketResult><IsTruncated>${String(!next)}</IsTruncated>${
        next ? "" : "<NextContinuationToken>more</NextContinuationToken>"
      }${keys.map(entry).join("")}</ListBucketResult>`,
    );
  };
  const files = await storeOf().list("s3://in/day", signal);
  expect(files.map(({ location }) => location)).toEqual([
    "s3://in/day",
    "s3://in/day/a.json.gz",
    "s3://in/day/z.ndjson",
  ]);
  expect(files[0]).toMatchObject({ size: 5, tag: '"t"' });
});

it("goes on where an interrupted download was", async () => {
  const content = randomBytes(300_000);
  let cuts = 0;
  answer = (request, response) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    expect(request.headers["if-match"]).toBe('"v1"');
    response.writeHead(from > 0 ? 206 : 200, { "content-length": content.length - from, etag: '"v1"' });
    cuts += 1;
    if (cuts > 2) response.end(content.subarray(from));
    else response.write(content.subarray(from, from + 100_000), () => response.destroy());
  };
  expect((await readAll(content.length)).equals(content)).toBe(true);
  expect(requests).toHaveLength(3);
  expect(requests[2]?.range).toMatch(/^bytes=\d+-$/);
});

it.each([
  [412, "PreconditionFailed", { code: "source_changed", retryable: false }],
  [404, "NoSuchKey", { code: "source_unreadable", retryable: false }],
  [403, "AccessDenied", { code: "source_unreadable", retryable: false }],
])("gives up at once on %d %s", async (status, code, expected) => {
  answer = (_, response) => refuse(response, status, code);
  await expect(readAll(10)).rejects.toMatchObject(expected);
  await expect(storeOf().list("s3://in/day", signal)).rejects.toMatchObject(expected);
  expect(requests).toHaveLength(2);
});

it("waits for a server that cannot answer now", async () => {
  let refusals = 0;
  answer = (_, response) => {
    refusals += 1;
    if (refusals < 5) refuse(response, 503, "SlowDown");
    else response.end("0123456789");
  };
  expect(String(await readAll(10))).toBe("0123456789");
});

it("takes no other addresses", async () => {
  await expect(storeOf().list("s3:///x", signal)).rejects.toMatchObject({ code: "source_unreadable" });
});
