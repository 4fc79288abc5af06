import Fastify from "fastify";
import { expect, it } from "vitest";
import { createAddressOf, unwrapTarget } from "./service-address.ts";

const address = async (
  headers: Record<string, string>,
  options: { publicBaseUrl?: string; remoteAddress?: string } = {},
): Promise<string> => {
  const app = Fastify({ trustProxy: "loopback" });
  const addressOf = createAddressOf(options.publicBaseUrl);
  app.get("/", (request) => addressOf(request));
  const { remoteAddress = "127.0.0.1" } = options;
  return (await app.inject({ url: "/", headers, remoteAddress })).payload;
};

it("is the configured address, else the one that was called, whatever host was forwarded", async () => {
  const forwarded = { host: "10.0.0.1:8080", "x-forwarded-proto": "https", "x-forwarded-host": "x.example" };
  const publicBaseUrl = "https://export.example/api";
  expect(await address(forwarded, { publicBaseUrl })).toBe(publicBaseUrl);
  expect(await address(forwarded)).toBe("https://10.0.0.1:8080/api");
  expect(await address({ host: "localhost:1234" })).toBe("http://localhost:1234/api");
  expect(await address({ host: "[::1]:1234" })).toBe("http://[::1]:1234/api");
});

it("takes the word of trusted proxies alone", async () => {
  const headers = {
    host: "export.example",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "evil.example",
  };
  expect(await address(headers, { remoteAddress: "203.0.113.9" })).toBe("http://export.example/api");
});

it("takes no host that could break out of a link", async () => {
  for (const host of ['a"b', "a>b", "a/b", "a b", "user@host"]) {
    expect(await address({ host })).toBe("http://localhost:80/api");
  }
  expect(await address({ host: "a", "x-forwarded-proto": "javascript" })).toBe("http://a/api");
});

it("takes a link to itself apart that a client put behind its own address", () => {
  const target = "/api/v2/export/messages?created_since=2024-01-01T00:00:00Z";
  for (const prefix of [
    "/https://host",
    "/http://host:8080",
    "/http:/host:8080",
    "/api/https://host",
    "/apihttps://host",
    "/https%3A//HOST",
    "http://host:8080",
    "/api",
    "",
  ]) {
    expect(unwrapTarget(prefix + target, ["host:443"]), prefix).toBe(target);
  }
});

it("leaves every other target alone", () => {
  for (const target of ["/", "/api?next=/https://host/x", "/https://host", "*", "/v2/https://host/x"]) {
    expect(unwrapTarget(target, ["host"])).toBe(target);
  }
});

it("leaves links to other hosts alone", () => {
  for (const host of ["other", "host.example", "host@other", "other:80"]) {
    const target = `/https://${host}/api/v2/export/messages`;
    expect(unwrapTarget(target, ["host", undefined])).toBe(target);
    expect(unwrapTarget(target, [undefined])).toBe(target);
  }
});

it("takes a target in absolute form under each name of the service", () => {
  for (const authority of ["public.example", "export-api.ns.svc:8080"]) {
    const hosts = ["public.example", "export-api.ns.svc:8080"];
    expect(unwrapTarget(`http://${authority}/api/openapi.json`, hosts)).toBe("/api/openapi.json");
  }
});
