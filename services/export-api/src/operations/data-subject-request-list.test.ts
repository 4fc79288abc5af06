import type { RequestSummary } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { serve } from "../http/json-body.fixture.ts";
import { createDataSubjectRequestList } from "./data-subject-request-list.ts";

const V2 = "/api/v2/data-subject-request";
const AT = Date.UTC(2026, 9, 4);

const stored: RequestSummary[] = [6, 5, 4, 3, 3, 2, 1].map((minute, index) => ({
  requestId: `${String(9 - index).repeat(32)}-0`,
  type: "ERASURE",
  status: index === 0 ? "awaiting_approval" : "completed",
  receivedAt: AT + minute * 60_000,
  updatedAt: AT + 3_600_000,
}));

const list = () =>
  createDataSubjectRequestList({
    requests: {
      list: (clientId, after, limit) => {
        const own = clientId === "acme" ? stored : [];
        const from = after === null ? 0 : own.findIndex((one) => one.requestId === after.requestId) + 1;
        return Promise.resolve(own.slice(from, from + limit));
      },
    },
    deadlineMs: 72 * 3_600_000,
    addressOf: () => "https://export.example/api",
    secret: "0123456789abcdef0123456789abcdef",
  });

type Page = { data: { request_id: string }[]; meta: { next_page_url: string | null } };

it("gives all requests once, the newest first, with their deadline, and no person", async () => {
  const { get } = await serve(list());
  const seen: string[] = [];
  let path: string | null = `${V2}?limit=3`;
  while (path !== null) {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    const { data, meta } = answer.body as Page;
    seen.push(...data.map((one) => one.request_id));
    const next = meta.next_page_url;
    expect(answer.headers.get("link")).toBe(next === null ? null : `<${next}>; rel="next"`);
    path = next === null ? null : next.replace("https://export.example", "");
  }
  expect(seen).toEqual(stored.map(({ requestId }) => requestId));
  const { data } = (await get(V2)).body as Page;
  expect(data).toHaveLength(7);
  expect(data[0]).toEqual({
    request_id: stored[0]?.requestId,
    type: "ERASURE",
    status: "awaiting_approval",
    received_at: "2026-10-04T00:06:00.000000+00:00",
    updated_at: "2026-10-04T01:00:00.000000+00:00",
    deadline: "2026-10-07T00:06:00.000000+00:00",
  });
});

it("refuses what is no cursor of this client, and other parameters", async () => {
  const { get } = await serve(list());
  const { meta } = (await get(`${V2}?limit=2`)).body as Page;
  const query = new URL(meta.next_page_url ?? "").search;
  expect(await get(V2 + query)).toMatchObject({ status: 200 });
  expect(await get(V2 + query, "globex")).toMatchObject({ status: 400 });
  for (const wrong of ["?cursor=x", "?limit=0", "?limit=1001", "?status=completed"]) {
    expect(await get(V2 + wrong), wrong).toMatchObject({ status: 400 });
  }
  expect(await get(V2, "globex")).toMatchObject({
    status: 200,
    body: { data: [], meta: { next_page_url: null } },
  });
});
