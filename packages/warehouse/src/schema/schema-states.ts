import type { Session } from "../session/session.ts";
import { appliedChecksums, type Migration, readMigrations } from "./migrate.ts";
import type { Topology } from "./migration-template.ts";

/** `changed`: since it was applied. `later`: of a newer version. */
export type SchemaState = {
  readonly name: string;
  readonly state: "applied" | "pending" | "changed" | "later";
};

export const statesOfMigrations = (
  files: readonly Pick<Migration, "name" | "checksum">[],
  ofServers: readonly ReadonlyMap<string, string>[],
): SchemaState[] => {
  const all = new Set([...files.map(({ name }) => name), ...ofServers.flatMap((one) => [...one.keys()])]);
  return [...all].sort().map((name): SchemaState => {
    const checksum = files.find((file) => file.name === name)?.checksum;
    if (checksum === undefined) return { name, state: "later" };
    const found = ofServers.map((applied) => applied.get(name));
    if (found.some((one) => one !== undefined && one !== checksum)) return { name, state: "changed" };
    return { name, state: found.includes(undefined) ? "pending" : "applied" };
  });
};

/** @throws WarehouseError from every method */
export type VersionReader = {
  load(): Promise<{ readonly server: string; readonly migrations: readonly SchemaState[] }>;
};

/** Of one shard. */
export const createVersionReader = (deps: {
  readonly session: Session;
  readonly topology: Topology;
}): VersionReader => {
  const { session, topology } = deps;
  let files: Promise<Migration[]> | undefined;
  return {
    load: async () => {
      files ??= readMigrations();
      const [server] = await session.rows<{ version: string }>(
        "versions.server",
        "SELECT version() AS version",
      );
      const applied = await appliedChecksums(session, "versions.migrations", topology);
      return { server: server?.version ?? "", migrations: statesOfMigrations(await files, [applied]) };
    },
  };
};
