import { viewProfile } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { clientUserFindings } from "./client-user-findings.ts";

const PROFILE = Object.fromEntries(viewProfile("client").map(({ name, value }) => [name, value ?? ""]));
const acme = (settings: Readonly<Record<string, string>>) => ({ name: "client_acme", settings });

it("is content with the profile that grants prints, and with none of them", () => {
  expect(clientUserFindings([acme(PROFILE)])).toMatchObject([{ state: "ok", name: "client users" }]);
  expect(clientUserFindings([])).toEqual([]);
});

it.each([
  [
    {
      readonly: "1",
      query_plan_enable_optimizations: "0",
      max_threads: "2",
      max_memory_usage: "2147483648",
      max_execution_time: "600",
    },
    "has no limit of max_memory_usage_for_user, max_temporary_data_on_disk_size_for_user, max_concurrent_queries_for_user",
  ],
  [{ ...PROFILE, max_memory_usage: "0" }, "has no limit of max_memory_usage"],
  [{ ...PROFILE, max_threads: "64" }, "may use more than one user should: max_threads 64 (2)"],
  [{ ...PROFILE, apply_deleted_mask: "0" }, "by which a view shows what it leaves out: apply_deleted_mask"],
  [{ ...PROFILE, additional_table_filters: "{'x': '0'}" }, "leaves out: additional_table_filters"],
  [{ ...PROFILE, readonly: "2" }, "may change settings"],
  [{ ...PROFILE, query_plan_enable_optimizations: "1" }, "query_plan_enable_optimizations is not 0"],
])("finds fault with %j", (settings, found) => {
  expect(clientUserFindings([acme(settings)])).toMatchObject([
    { state: "problem", name: "user client_acme", found: expect.stringContaining(found) },
  ]);
});

it("finds a name that a view takes for no client's", () => {
  expect(clientUserFindings([{ name: "Client_acme", settings: PROFILE }])).toMatchObject([
    { state: "problem", name: "user Client_acme", found: expect.stringContaining("sees all clients") },
  ]);
});

it("says when it may not look", () => {
  expect(clientUserFindings(null)).toMatchObject([
    { state: "skipped", advice: expect.stringContaining("SHOW USERS") },
  ]);
});
