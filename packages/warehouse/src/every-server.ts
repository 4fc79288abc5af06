import type { ClickHouseClient } from "@clickhouse/client";
import { type ConnectionOptions, connect } from "./connection.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

type Statement = Parameters<ClickHouseClient["command"]>[0];

/** The servers that a statement about the tables which hold rows has to reach. */
export type EveryServer = {
  /**
   * Runs a statement that may run twice: on each shard, or once where `ON CLUSTER` does the rest or there is but one
   * server. Waits for all of them, then throws the `WarehouseError` of the first that failed, which names its shard.
   */
  command(statement: Statement): Promise<unknown>;
  close(): Promise<void>;
};

/** `url` for each shard, with user, password and database of the given one; that one alone where it speaks for all. */
export const serverUrls = (url: string, { shards }: Topology): readonly string[] =>
  shards?.map((shard) => {
    const server = new URL(url);
    const { protocol, host } = new URL(shard);
    server.protocol = protocol;
    server.host = host;
    // An address without a port means that of its protocol.
    if (new URL(shard).port === "") server.port = "";
    return server.href;
  }) ?? [url];

export const createEveryServer = ({
  topology,
  ...options
}: ConnectionOptions & { readonly topology: Topology }): EveryServer => {
  const servers = serverUrls(options.url, topology).map((url, index) => ({
    shard: topology.shards?.[index],
    client: connect({ ...options, url }),
  }));
  return {
    command: async (statement) => {
      const ran = await Promise.allSettled(
        servers.map(async ({ client, shard }) => {
          try {
            await client.command(statement);
          } catch (error) {
            throw toWarehouseError(error, shard);
          }
        }),
      );
      for (const one of ran) if (one.status === "rejected") throw one.reason;
    },
    close: async () => {
      await Promise.all(servers.map(({ client }) => client.close()));
    },
  };
};
