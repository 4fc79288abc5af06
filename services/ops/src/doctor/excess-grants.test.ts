import { grantsOf, SERVICE_USERS } from "@conversation-export/warehouse";
import { describe, expect, it } from "vitest";
import { excessGrants, rightsEverywhere } from "./excess-grants.ts";

const DATABASE = "export";
const found = (user: "reader" | "jobs", cluster: string | null, ...lines: string[]) =>
  excessGrants(lines, grantsOf(user, DATABASE, { cluster, shards: [] }), DATABASE);

describe("excessGrants", () => {
  it("allows a column alone where a column alone is needed", () => {
    const line = (privilege: string): string => `GRANT ${privilege} ON export.messages TO jobs`;
    const needed = [{ privileges: ["ALTER UPDATE(_row_exists)"], on: "export.messages" }];
    expect(excessGrants([line("ALTER UPDATE(_row_exists)")], needed, "export")).toEqual([]);
    expect(excessGrants([line("ALTER UPDATE")], needed, "export")).toHaveLength(1);
    expect(excessGrants([line("ALTER UPDATE(body)")], needed, "export")).toHaveLength(1);
  });

  it("finds nothing in what the user needs, whole or by column", () => {
    const needed = [
      "GRANT SELECT ON export.messages TO r",
      "GRANT SELECT(client_id, record), SELECT(version) ON `export`.`conversations` TO r",
    ];
    expect(found("reader", null, ...needed)).toEqual([]);
    expect(found("jobs", null, "GRANT INSERT, ALTER DELETE, SELECT ON export.messages TO j")).toEqual([]);
    expect(found("jobs", "c", "GRANT READ, WRITE ON REMOTE TO j", "GRANT REMOTE ON *.* TO j")).toEqual([]);
  });

  it.each([
    [
      "another table",
      "GRANT SELECT ON export.data_subject_requests TO r",
      "SELECT on export.data_subject_requests",
    ],
    [
      "a column of another table",
      "GRANT SELECT(email) ON export.suppressions TO r",
      "SELECT(email) on export.suppressions",
    ],
    ["another privilege", "GRANT SELECT, INSERT ON export.messages TO r", "INSERT on export.messages"],
    ["the whole database", "GRANT SELECT ON export.* TO r", "SELECT on export.*"],
    ["databases by prefix", "GRANT SELECT ON exp*.* TO r", "SELECT on exp*.*"],
    ["everything", "GRANT SELECT, INSERT ON *.* TO r", "SELECT, INSERT on *.*"],
    [
      "a right to pass on",
      "GRANT SELECT ON export.messages TO r WITH GRANT OPTION",
      "SELECT on export.messages with grant option",
    ],
  ])("finds %s", (_, line, text) => {
    expect(found("reader", null, line)).toEqual([{ text, grave: true }]);
  });

  it("finds less grave what does not reach the tables", () => {
    expect(found("jobs", null, "GRANT READ, WRITE ON REMOTE TO j")).toEqual([
      { text: "READ, WRITE on REMOTE", grave: false },
    ]);
    expect(
      found("reader", null, "GRANT SELECT ON system.* TO r", "GRANT SELECT ON other.t TO r"),
    ).toHaveLength(2);
  });

  it("ignores roles, whose rights are listed too, and what is revoked", () => {
    expect(found("reader", null, "GRANT staff TO r", "REVOKE SELECT ON export.messages FROM r")).toEqual([]);
  });
});

describe("rightsEverywhere", () => {
  const KEEPER = { cluster: "c" };

  it("finds what ON CLUSTER asks for on all databases, of jobs alone", () => {
    expect(rightsEverywhere(grantsOf("jobs", DATABASE, KEEPER))).toEqual(["ALTER DELETE", "OPTIMIZE"]);
    for (const user of SERVICE_USERS.filter((one) => one !== "jobs"))
      expect(rightsEverywhere(grantsOf(user, DATABASE, KEEPER))).toEqual([]);
  });

  it.each([
    ["a single server", { cluster: null }],
    ["shards without Keeper", { cluster: "c", shards: ["http://ch-1:8123"] }],
  ])("finds nothing on %s", (_, topology) => {
    expect(rightsEverywhere(grantsOf("jobs", DATABASE, topology))).toEqual([]);
  });
});

it("names the right to act as another user", () => {
  const needed = grantsOf("analyst", DATABASE, { cluster: null });
  expect(excessGrants(["GRANT IMPERSONATE ON migrator TO ada"], needed, DATABASE)).toEqual([
    { text: "IMPERSONATE on migrator", grave: false },
  ]);
});
