import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { createEveryServer, serverUrls } from "./every-server.ts";

describe("serverUrls", () => {
  const url = "https://user:p%40ss@one:8443/db";

  it("puts the credentials and the database of the address before every shard", () => {
    expect(serverUrls(url, { cluster: "main", shards: ["http://a:8123", "https://b"] })).toEqual([
      "http://user:p%40ss@a:8123/db",
      "https://user:p%40ss@b/db",
    ]);
  });

  it("is the address itself where one server speaks for all", () => {
    expect(serverUrls(url, { cluster: null })).toEqual([url]);
    expect(serverUrls(url, { cluster: "main" })).toEqual([url]);
  });
});

describe("createEveryServer", () => {
  it("tells all shards, also when one fails, and names that one", async () => {
    const told: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        told.push(Buffer.concat(chunks).toString());
        response.end();
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const good = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gone = "http://127.0.0.1:1";
    const servers = createEveryServer({
      url: `${good}/db`,
      application: "test",
      topology: { cluster: "main", shards: [gone, good] },
    });
    try {
      await expect(servers.command({ query: "SYSTEM STOP MERGES" })).rejects.toMatchObject({
        code: "warehouse_unavailable",
        causeName: "ECONNREFUSED",
        retryable: true,
        message: expect.stringContaining(gone),
      });
      expect(told).toEqual([expect.stringContaining("SYSTEM STOP MERGES")]);
    } finally {
      await servers.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
