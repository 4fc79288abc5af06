import { expect, it } from "vitest";
import { neededBy } from "./warehouse-users.ts";

it.each([
  ["one server", { cluster: null }, []],
  ["a cluster with Keeper", { cluster: "main" }, ["REMOTE", "CLUSTER"]],
  ["shards without Keeper", { cluster: "main", shards: ["http://a", "http://b"] }, ["REMOTE"]],
])("a migrator of %s needs everywhere what its statements need", (_, topology, expected) => {
  const everywhere = neededBy("migrator", "export", topology).filter(({ on }) => on === "*.*");
  expect(everywhere.flatMap(({ privileges }) => privileges)).toEqual(expected);
});
