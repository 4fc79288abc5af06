import { createKey } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { AUTHORIZED, CLIENT, createListReader, createTestApp, KEY } from "../http/app.fixture.ts";

const IDS = ["A", "a b", "b&c=1", "c", "null", "é"];
const OTHER_KEY = createKey().key;
const allowed = { ...CLIENT, scopes: ["end_users"] };
const { reader } = createListReader({
  endUsers: [
    ...IDS.map((id) => ({ clientId: "acme", id, externalIds: [`crm ${id}`, "family"] })),
    { clientId: "globex", id: "g", externalIds: ["family"] },
  ],
  clients: { [KEY]: allowed, [OTHER_KEY]: { ...allowed, clientId: "globex", scopes: ["export"] } },
});
const { app } = createTestApp(reader, { publicBaseUrl: "https://export.example.com/api" });

type Body = { data: { end_user_id: string }[]; meta: { next_page_url: string | null } };
const get = async (query: string, path = "/api/v2/end-users/") => {
  const answer = await app.inject({ url: path + query, headers: AUTHORIZED });
  const body = answer.json<Body>();
  return { answer, ids: body.data.map((user) => user.end_user_id), link: body.meta.next_page_url };
};
const refusal = async (query: string): Promise<string> => {
  const answer = await app.inject({ url: `/api/v2/end-users${query}`, headers: AUTHORIZED });
  expect(answer.statusCode).toBe(400);
  return answer.json<{ errors: [{ details: string }] }>().errors[0].details;
};

it("answers on both paths, and with the headers alone for HEAD", async () => {
  for (const path of ["/api/v2/end-users", "/api/v2/end-users/"]) {
    const { answer, ids, link } = await get("", path);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect({ ids, link }).toEqual({ ids: IDS, link: null });
  }
  const head = await app.inject({ method: "HEAD", url: "/api/v2/end-users?limit=1", headers: AUTHORIZED });
  expect(head.statusCode).toBe(200);
  expect(head.body).toBe("");
});

it.each([
  "",
  "&external_id=family",
])("pages by absolute links that start at the first record of the next page%s", async (filter) => {
  for (const limit of [1, 2, 5, 6]) {
    const seen: string[] = [];
    let query = `?limit=${limit}${filter}`;
    for (;;) {
      const { ids, link } = await get(query);
      seen.push(...ids);
      expect(ids.length).toBeLessThanOrEqual(limit);
      if (link === null) break;
      const url = new URL(link);
      expect(url.origin + url.pathname).toBe("https://export.example.com/api/v2/end-users/");
      expect(url.searchParams.get("cursor")).toBe(IDS[seen.length]);
      expect(url.searchParams.get("limit")).toBe(String(limit));
      query = url.search;
    }
    expect(seen).toEqual(IDS);
  }
});

it("starts at any id, that one included, and selects by external id", async () => {
  expect((await get("?cursor=b")).ids).toEqual(["b&c=1", "c", "null", "é"]);
  expect((await get("?cursor=null")).ids).toEqual(["null", "é"]);
  expect((await get("?cursor=%C3%A9")).ids).toEqual(["é"]);
  expect((await get("?external_id=crm+a%20b")).ids).toEqual(["a b"]);
  expect((await get("?external_id=nobody")).ids).toEqual([]);
  expect((await get("?cursor=&external_id=")).ids).toEqual(IDS);
});

it("names every parameter that is wrong", async () => {
  const details = await refusal("?limit=0&page_size=5&cursor=a&cursor=b&external_id=%FF");
  for (const name of [
    "limit: must be",
    "page_size: unknown",
    "cursor: given more than once",
    "external_id: ",
  ]) {
    expect(details).toContain(name);
  }
  for (const limit of ["", "1001", "1.5", "-1", "01", "1e2"])
    expect(await refusal(`?limit=${limit}`)).toContain("limit");
});

it("needs its own scope", async () => {
  const answer = await app.inject({
    url: "/api/v2/end-users/",
    headers: { authorization: `Bearer ${OTHER_KEY}` },
  });
  expect(answer.statusCode).toBe(403);
  expect(answer.json()).toMatchObject({ errors: [{ type: "authorization_error" }] });
});
