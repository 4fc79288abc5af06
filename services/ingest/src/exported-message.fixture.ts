import type { BusMessage } from "@conversation-export/bus";

export const NOW = Date.parse("2026-10-20T10:00:00Z");

export const exportedMessage = (
  offset: number,
  data: object = {},
  change: Partial<BusMessage> = {},
): BusMessage => ({
  topic: "messages",
  partition: 0,
  offset,
  key: null,
  value: Buffer.from(
    JSON.stringify({
      specversion: "1.0",
      id: `e${offset}`,
      source: "/test",
      type: "message.exported",
      time: "2026-10-20T09:59:00Z",
      clientid: "acme",
      data: { _id: `m${offset}`, conversation_id: "c", date_created: "2026-10-20T09:00:00Z", ...data },
    }),
  ),
  headers: {},
  timestamp: NOW,
  ...change,
});
