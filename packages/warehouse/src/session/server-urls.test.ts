import { describe, expect, it } from "vitest";
import { serverUrls } from "./server-urls.ts";

describe("serverUrls", () => {
  const url = "https://user:p%40ss@one:8443/db";

  it("adds the credentials and the database to the address of every shard", () => {
    expect(serverUrls(url, { cluster: "main", shards: ["http://a:8123", "https://b"] })).toEqual([
      "http://user:p%40ss@a:8123/db",
      "https://user:p%40ss@b/db",
    ]);
  });

  it("is the address itself without a list of shards", () => {
    expect(serverUrls(url, { cluster: null })).toEqual([url]);
    expect(serverUrls(url, { cluster: "main" })).toEqual([url]);
  });
});
