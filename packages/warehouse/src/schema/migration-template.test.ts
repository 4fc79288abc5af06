import { describe, expect, it } from "vitest";
import { readMigrations } from "./migrate.ts";
import { renderMigration } from "./migration-template.ts";

const TEMPLATE = `-- a comment; with a semicolon
CREATE TABLE IF NOT EXISTS {{local things}} {{on cluster}} (
  id String COMMENT 'a;b',
  version UInt64
) ENGINE = {{engine ReplacingMergeTree(version)}} ORDER BY id;

{{distributed things by cityHash64(id, version)}};
ALTER TABLE {{local things}} {{on cluster}} ADD INDEX IF NOT EXISTS i id TYPE minmax;
{{alter things ADD COLUMN IF NOT EXISTS x Map(String, String)}};`;

describe("renderMigration", () => {
  it("makes plain tables for one server", () => {
    const [create, index, alter] = renderMigration(TEMPLATE, { cluster: null });
    expect(create?.replace(/\s+/g, " ")).toBe(
      "CREATE TABLE IF NOT EXISTS things ( id String COMMENT 'a;b', version UInt64 ) ENGINE = ReplacingMergeTree(version) ORDER BY id",
    );
    expect(index?.replace(/\s+/g, " ")).toBe("ALTER TABLE things ADD INDEX IF NOT EXISTS i id TYPE minmax");
    expect(alter).toBe("ALTER TABLE things ADD COLUMN IF NOT EXISTS x Map(String, String)");
  });

  it("makes replicated tables behind distributed ones for a cluster", () => {
    const [create, distributed, index, alterLocal, alterDistributed] = renderMigration(TEMPLATE, {
      cluster: "main",
    });
    expect(create).toContain("IF NOT EXISTS things_local ON CLUSTER 'main' (");
    expect(create).toContain("ENGINE = ReplicatedReplacingMergeTree(version) ORDER BY id");
    expect(distributed).toBe(
      "CREATE TABLE IF NOT EXISTS things ON CLUSTER 'main' AS things_local ENGINE = Distributed('main', currentDatabase(), 'things_local', cityHash64(id, version))",
    );
    expect(index).toBe("ALTER TABLE things_local ON CLUSTER 'main' ADD INDEX IF NOT EXISTS i id TYPE minmax");
    const action = "ON CLUSTER 'main' ADD COLUMN IF NOT EXISTS x Map(String, String)";
    expect([alterLocal, alterDistributed]).toEqual([
      `ALTER TABLE things_local ${action}`,
      `ALTER TABLE things ${action}`,
    ]);
  });

  it("makes unreplicated tables on shards that get each statement themselves", () => {
    const plain = renderMigration(TEMPLATE, { cluster: "main", shards: ["http://a:8123", "http://b:8123"] });
    expect(plain.join("\n")).not.toMatch(/ON CLUSTER|Replicated/);
    const [create, distributed, index, alterLocal, alterDistributed] = plain;
    expect(create).toContain("ENGINE = ReplacingMergeTree(version) ORDER BY id");
    expect(create).toMatch(/^CREATE TABLE IF NOT EXISTS things_local\s/);
    expect(distributed).toBe(
      "CREATE TABLE IF NOT EXISTS things AS things_local ENGINE = Distributed('main', currentDatabase(), 'things_local', cityHash64(id, version))",
    );
    expect(index).toMatch(/^ALTER TABLE things_local\s/);
    expect([alterLocal, alterDistributed].map((statement) => statement?.split(" ")[2])).toEqual([
      "things_local",
      "things",
    ]);
  });

  it("lets rows of a hand carry the present only, by the column that is their stamp", () => {
    const [create = ""] = renderMigration("CREATE TABLE t (a Int8, {{stamped stored_at}}) ENGINE = Null;", {
      cluster: null,
    });
    expect(create.replaceAll(/\s+/g, " ")).toContain(
      "CONSTRAINT stamped CHECK NOT throwIf( NOT startsWith(getSetting('log_comment'), 'stamped') AND (stored_at < now64(6) - INTERVAL 1 SECOND OR stored_at > now64(6) + INTERVAL 10 SECOND),",
    );
  });

  it("refuses a tag that it does not know", () => {
    expect(() => renderMigration("SELECT {{nothing}};", { cluster: null })).toThrow("nothing");
  });
});

describe("the migrations", () => {
  it("are numbered without gaps, can run twice, reach the same tables in both topologies, and stamp rows of records", async () => {
    const migrations = await readMigrations();
    expect(migrations.map(({ name }) => Number(name.slice(0, 4)))).toEqual(
      migrations.map((_, index) => index + 1),
    );
    const created = (cluster: string | null): string[] =>
      migrations.flatMap(({ template }) =>
        renderMigration(template, { cluster }).flatMap((statement) => {
          expect(statement).toMatch(/\bIF (NOT )?EXISTS\b|\bMODIFY (COLUMN|SETTING|TTL)\b/);
          expect(statement).not.toMatch(/[{}]{2}/);
          return /^CREATE TABLE IF NOT EXISTS (\w+)/.exec(statement)?.[1] ?? [];
        }),
      );
    const single = created(null);
    const stamped = migrations.flatMap(({ template }) =>
      renderMigration(template, { cluster: "main" }).flatMap((statement) => {
        const [, table] = /^CREATE TABLE IF NOT EXISTS (\w+)_local/.exec(statement) ?? [];
        const [, column] = /CONSTRAINT stamped CHECK[^]*?AND \((\w+) </.exec(statement) ?? [];
        return table === undefined || column === undefined ? [] : [`${table} ${column}`];
      }),
    );
    expect(stamped.toSorted()).toEqual([
      "changes stored_at",
      "conversation_updates uploaded_at",
      "conversations uploaded_at",
      "end_users uploaded_at",
      "handoffs uploaded_at",
      "landing uploaded_at",
      "messages uploaded_at",
    ]);
    expect(single).toEqual(
      expect.arrayContaining(["conversations", "conversation_updates", "handoffs", "messages", "end_users"]),
    );
    expect(created("main").toSorted()).toEqual(
      [...single, ...single.map((table) => `${table}_local`)].toSorted(),
    );
  });
});
