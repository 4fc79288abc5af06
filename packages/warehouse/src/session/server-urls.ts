import type { Topology } from "../schema/migration-template.ts";

/** With user, password and database of `url`; without shards `url`, which forwards to all. */
export const serverUrls = (url: string, { shards }: Topology): readonly string[] =>
  shards?.map((shard) => {
    const server = new URL(url);
    const { protocol, host } = new URL(shard);
    server.protocol = protocol;
    server.host = host;
    // Otherwise the port of `url` would stay.
    if (new URL(shard).port === "") server.port = "";
    return server.href;
  }) ?? [url];
