import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer as createProxy } from "node:http";
import { createServer } from "node:https";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer as createListener, type Server } from "node:net";
import { PassThrough } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, expect, it } from "vitest";
import { raw } from "../http/test-server.fixture.ts";
import { createClient } from "../client.ts";
import { LIST, usePlace } from "./command.fixture.ts";
import { run } from "./program.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const place = usePlace();
const running: Server[] = [];
let keys: { readonly key: Buffer; readonly cert: Buffer };

beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), "certificate-"));
  const path = (name: string): string => join(folder, name);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path("key")];
  const names = ["-subj", "/CN=other", "-addext", "subjectAltName=DNS:other"];
  execFileSync("openssl", ["req", "-x509", ...key, "-out", path("cert"), ...names], { stdio: "ignore" });
  keys = { key: readFileSync(path("key")), cert: readFileSync(path("cert")) };
  rmSync(folder, { recursive: true });
});
afterEach(() => running.splice(0).forEach((server) => server.close()));

const portOf = async (server: Server): Promise<number> => {
  running.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
};
const pull = (url: string) =>
  place.command(["pull", "--to", place.folder(), ...LIST], { EXPORT_API_URL: url });

it.each<[string, () => Promise<string>, string]>([
  [
    "a certificate that is not trusted",
    async () => `https://127.0.0.1:${await portOf(createServer(keys))}`,
    "DEPTH_ZERO_SELF_SIGNED_CERT, its certificate is not trusted: name a file with the certificate of its authority in NODE_EXTRA_CA_CERTS",
  ],
  ["an unknown host", async () => "https://no-such-host.invalid", "ENOTFOUND, no such host is known"],
  ["a port that is never used", async () => "http://127.0.0.1:6000", "requests to this port are not sent"],
  [
    "a server without TLS",
    async () => place.service.url.replace("http:", "https:"),
    "it does not speak TLS as it should",
  ],
  [
    "a server of something else",
    async () => `http://127.0.0.1:${await portOf(createListener((socket) => socket.end("hello\r\n")))}`,
    "it does not speak HTTP",
  ],
])("%s ends the command at once", async (_, url, said) => {
  const { code, err } = await pull(await url());
  expect(code).toBe(4);
  expect(err).toContain(said);
  expect(err.trimEnd().split("\n")).toHaveLength(1);
});

it("a closed port is printed before it is tried again, as is each answer of a service that is busy", async () => {
  const gone = createListener();
  const port = await portOf(gone);
  gone.close();
  const stop = new AbortController();
  const stderr = new PassThrough();
  const env = { EXPORT_API_URL: `http://127.0.0.1:${port}/api`, EXPORT_API_KEY: "k" };
  const args = ["pull", "--to", place.folder()];
  const ended = run(args, { env, stdout: new PassThrough(), stderr, signal: stop.signal });
  const [first] = (await once(stderr, "data")) as [Buffer];
  stop.abort(new Error("enough"));
  await ended;
  expect(first.toString()).toMatch(
    /^the connection to 127\.0\.0\.1:\d+ failed: ECONNREFUSED, nothing listens there: is the address right, and does the service run\?; attempt 2 of 8 in \d\.\d s\n$/,
  );
  place.service.next(raw(503, "text/html", "<html>\u001b[31mbusy</html>", { "retry-after": "0" }));
  const { code, err } = await place.command(["pull", "--to", place.folder(), ...LIST, "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(err)).toMatchObject({
    retry: {
      error: "503: another server answered, with 22 characters of text/html",
      attempt: 2,
      attempts: 8,
    },
  });
});

it("a host that has answered is tried again when it is unknown for a while", async () => {
  let asked = 0;
  const client = createClient({
    baseUrl: place.service.url,
    apiKey: "k",
    retry: { firstWaitMs: 1 },
    fetch: (input, init) => {
      asked += 1;
      const cause = Object.assign(new Error("unknown"), { code: "ENOTFOUND" });
      return asked === 2 ? Promise.reject(new TypeError("failed", { cause })) : fetch(input, init);
    },
  });
  for (let at = 0; at < 2; at += 1)
    for await (const page of client.changes("conversations")) expect(page.endOfStream).toBe(true);
  expect(asked).toBe(3);
});

const start = (args: readonly string[], env: Record<string, string>) => {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env["PATH"], EXPORT_API_KEY: "k", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let err = "";
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return once(child, "close").then(([code]: (number | null)[]) => ({ code, err }));
};

it("the proxy that the environment names is used, and named when the service is not reached", async () => {
  const through: string[] = [];
  const proxy = createProxy();
  const onward = Number(new URL(place.service.url).port);
  proxy.on("connect", ({ url = "" }, socket) => {
    through.push(url);
    if (!url.startsWith("export.invalid:")) {
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    const service = connect(onward, "127.0.0.1");
    for (const one of [socket, service]) one.on("error", () => undefined);
    socket.pipe(service).pipe(socket);
  });
  const http_proxy = `http://127.0.0.1:${await portOf(proxy)}`;
  const args = ["pull", "--to", join(place.root, "copy"), ...LIST, "--url"];
  const taken = start([...args, "http://export.invalid/api"], { http_proxy });
  expect(await taken).toEqual({ code: 0, err: "" });
  expect(new Set(through)).toEqual(new Set(["export.invalid:80"]));
  const wrong = start([...args, "http://export.invalid/api"], { http_proxy: "socks5://me:secret@proxy" });
  expect(await wrong).toEqual({
    code: 2,
    err: "http_proxy: must be an address that begins with http:// or https://\ntry --help\n",
  });
  const url = "https://other.invalid/api";
  const refused = start(["pull", "--to", join(place.root, "new"), "--url", url], { HTTPS_PROXY: http_proxy });
  expect(await refused).toEqual({
    code: 4,
    err: expect.stringMatching(
      /^HTTPS_PROXY is set: requests go through that proxy[^\n]*\nthe connection to other.invalid failed: Proxy response \(403\)[^\n]*, the proxy refuses: [^\n]*\n$/,
    ),
  });
});

it.each([
  "me:secret@proxy:3128",
  "socks5://me:secret@proxy",
  "http://",
  "http://me:%secret@proxy",
  "secret",
])("the variable of a wrong proxy is named, and its value nowhere: %s", async (proxy) => {
  const args = ["--to", place.folder(), ...LIST];
  for (const name of ["http_proxy", "HTTP_PROXY"]) {
    const { code, out, err } = await place.command(["pull", ...args], { [name]: proxy });
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: `${name}: must be an address that begins with http:// or https://\ntry --help\n`,
    });
  }
  expect(place.service.server.asked).toEqual([]);
});

it("a wrong proxy does not matter where no request goes through it", async () => {
  const wrong = { http_proxy: "proxy:3128", https_proxy: "proxy:3128" };
  const args = ["--to", place.folder(), ...LIST];
  for (const no_proxy of [
    "*",
    "other, 127.0.0.1",
    ".0.0.1",
    "*.0.1 x",
    `127.0.0.1:${new URL(place.service.url).port}`,
  ])
    expect(await place.command(["pull", ...args], { ...wrong, no_proxy }), no_proxy).toMatchObject({
      code: 0,
    });
  for (const NO_PROXY of ["7.0.0.1", "127.0.0.1:1", ""])
    expect(await place.command(["pull", ...args], { ...wrong, NO_PROXY }), NO_PROXY).toMatchObject({
      code: 2,
    });
  expect(await place.command(["pull", ...args], { https_proxy: "proxy:3128" })).toMatchObject({ code: 0 });
  for (const more of [["compact", ...args], ["--help"]])
    expect(await place.command(more, wrong)).toMatchObject({ code: 0, err: "" });
});
