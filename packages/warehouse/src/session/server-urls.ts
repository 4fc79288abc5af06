import type { Topology } from "../schema/migration-template.ts";

/**
 * URL of every shard, with user, password and database taken from `url`. Without a list of shards, `url`
 * alone: that server forwards statements to all others.
 */
export const serverUrls = (url: string, { shards }: Topology): readonly string[] =>
  shards?.map((shard) => {
    const server = new URL(url);
    const { protocol, host } = new URL(shard);
    server.protocol = protocol;
    server.host = host;
    // Without a port in the address, the default port of its protocol applies, not the port of `url`.
    if (new URL(shard).port === "") server.port = "";
    return server.href;
  }) ?? [url];
