import type { PageQuery } from "@conversation-export/warehouse";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "./records.ts";
import type { Warehouse } from "./warehouse.ts";

export const KEY_HASH = "0".repeat(64);
/** Larger than any stamp below, µs. */
const STABLE_UP_TO = DAY_0 + 200 * DAY;
export const WAYS = { conversationId: "c000", stableUpTo: STABLE_UP_TO, keyHash: KEY_HASH };
export const WINDOW: PageQuery = {
  clientId: "acme",
  since: DAY_0,
  to: DAY_0 + 30 * DAY,
  pageSize: 100,
  wholeTies: false,
};

export const writeEveryWay = async (warehouse: Warehouse): Promise<void> => {
  const ids = Array.from({ length: 150 }, (_, index) => String(index).padStart(3, "0"));
  for (const round of [0, 1]) {
    const at = { client: "acme", time: DAY_0 + (30 + round) * DAY };
    const dateOf = (id: string): number =>
      DAY_0 + Number(id) * SECOND + (id.endsWith("77") ? round * DAY : 0);
    const handoffs = [
      { id: `h${round}`, date_created: "2026-10-04T00:00:00Z", name: "Desk", reason_code: null },
    ];
    await warehouse.write(
      ids.map((id) =>
        conversation(at, `c${id}`, dateOf(id), dateOf(id) + round * DAY, {
          csat: { score: round },
          agent_handle_time: 1.5,
          handoffs: Number(id) % 3 === 0 ? handoffs : [],
        }),
      ),
      DAY_0 + (60 + round) * DAY,
    );
    await warehouse.write(
      ids.map((id) =>
        message(at, `m${id}`, dateOf(id), "c000", { review: round, message_data: { body: id } }),
      ),
      DAY_0 + (70 + round) * DAY,
    );
    await warehouse.write(
      ids.map((id) => endUser(at, `u${id}`, { profile: { email: `${id}@example.com` } })),
      DAY_0 + (80 + round) * DAY,
    );
  }
  await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
    SELECT 'acme', arrayJoin(['conversation', 'message', 'end_user_id']), arrayJoin(['c001', 'm002', 'u003']), '2100-01-01', 'r', 'erased'`);
  await warehouse.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted)
    SELECT 'acme', arrayJoin(['conversation', 'message', 'end_user']), fromUnixTimestamp64Micro(${DAY_0 + 100 * DAY}, 'UTC'), 'gone', fromUnixTimestamp64Micro(${DAY_0}, 'UTC'), true`);
  await warehouse.sql(`INSERT INTO clients (client_id) VALUES ('acme')`);
  await warehouse.sql(
    `INSERT INTO api_keys (key_hash, key_id, client_id, scopes) VALUES ('${KEY_HASH}', 'k', 'acme', ['export'])`,
  );
};
