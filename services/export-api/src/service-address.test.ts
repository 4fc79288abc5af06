import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { serviceAddress, unwrapTarget } from "./service-address.ts";

const address = (headers: IncomingHttpHeaders, publicBaseUrl?: string): string =>
  serviceAddress({ headers, socket: { localPort: 8080 } as Socket }, publicBaseUrl);

it("is the configured address, else the forwarded one, else the one that was called", () => {
  const forwarded = {
    host: "10.0.0.1:8080",
    "x-forwarded-proto": "https, http",
    "x-forwarded-host": "x.example, y",
  };
  expect(address(forwarded, "https://export.example/api")).toBe("https://export.example/api");
  expect(address(forwarded)).toBe("https://x.example/api");
  expect(address({ host: "localhost:1234" })).toBe("http://localhost:1234/api");
  expect(address({ host: "[::1]:1234" })).toBe("http://[::1]:1234/api");
});

it("takes no host that could break out of a link", () => {
  for (const host of ['a"b', "a>b", "a/b", "a b", "", "user@host"]) {
    expect(address({ host })).toBe("http://localhost:8080/api");
    expect(address({ host: "good.example", "x-forwarded-host": host })).toBe("http://good.example/api");
  }
  expect(address({ host: "a", "x-forwarded-proto": "javascript" })).toBe("http://a/api");
});

it("takes a link apart that a client put behind its own address", () => {
  const target = "/api/v2/export/messages?created_since=2024-01-01T00:00:00Z";
  for (const prefix of [
    "/https://host",
    "/http://host:8080",
    "/http:/host:8080",
    "/api/https://host",
    "/apihttps://host",
    "/https%3A//host",
    "http://host:8080",
    "",
  ]) {
    expect(unwrapTarget(prefix + target), prefix).toBe(target);
  }
});

it("leaves every other target alone", () => {
  for (const target of ["/", "/api?next=/https://host/x", "/https://host", "*", "/v2/https://host/x"]) {
    expect(unwrapTarget(target)).toBe(target);
  }
});
