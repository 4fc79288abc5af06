import { createRandom, type Random } from "../sample/values/random.ts";

/** `statuses` are right answers; with none, closing is right. */
export type MalformedRequest = {
  readonly kind: string;
  readonly parts: readonly (string | Buffer)[];
  readonly statuses: readonly number[];
  /** The caller closes its side after the last part. */
  readonly hangUp?: boolean;
};

const LIMIT = 4_000_000;
const CONVERSATIONS = "/api/v2/export/conversations";
const SINCE = "created_since=2024-01-01T00:00:00Z";
const LISTS = [
  CONVERSATIONS,
  "/api/v2/export/messages",
  "/api/v2/end-users/",
  "/data_api/v1.2/messages",
  "/api/data_api/v1/conversations",
];
const POSTS = ["/api/v2/data-subject-request", "/api/v1/data-subject-request", "/api/campaigns/sms/trigger"];

type Pick = Random["pick"];

const CATEGORIES = (pick: Pick, auth: string): Record<string, () => Omit<MalformedRequest, "kind">> => {
  const get = (target: string, headers = auth): string =>
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}Connection: close\r\n\r\n`;
  const post = (target: string, headers: string, body: string | Buffer) => [
    `POST ${target} HTTP/1.1\r\nHost: localhost\r\n${auth}Connection: close\r\n${headers}\r\n`,
    body,
  ];
  const json = (body: string | Buffer): string =>
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;

  return {
    "bad encodings in the path": () => ({
      parts: [get(`/api/v2/${pick(["%zz", "%", "%c3%28", "%ed%a0%80", "%00", "..%2f..%2fetc", "%2e%2e/"])}`)],
      statuses: [400, 404],
    }),
    "bad encodings in the query": () => ({
      parts: [
        get(`${pick(LISTS)}?created_since=${pick(["%zz", "%", "%c3%28", "%ed%a0%80", "%00", "%ff%fe"])}`),
      ],
      statuses: [400],
    }),
    "bad values": () => ({
      parts: [
        get(
          `${CONVERSATIONS}?${pick([
            "created_since=99999999999999999999",
            "created_since=2024-13-45T99:99:99Z",
            "created_since=2024-01-01T00:00:00+00:00",
            `${SINCE}&page_size=1e9`,
            `${SINCE}&page_size=-1`,
            `${SINCE}&page_size=${"9".repeat(400)}`,
            `${SINCE}&cursor=${"A".repeat(4_000)}`,
            `${SINCE}&cursor=%00`,
            `${SINCE}&updated_since=2024-01-01T00:00:00Z`,
            `${SINCE}&${SINCE}`,
            "",
          ])}`,
        ),
      ],
      statuses: [400],
    }),
    "nested query keys": () => ({
      parts: [
        get(
          `${pick(LISTS)}?${pick([
            "a[b][c]=1",
            "__proto__[page_size]=1",
            "__proto__=1",
            "constructor[prototype][x]=1",
            "constructor=1",
            "toString=1",
            "page_size[]=100",
            "page_size[$gt]=1",
            `${"[a]".repeat(2_000)}=1`,
            Array.from({ length: 1_000 }, (_, n) => `k${n}=1`).join("&"),
          ])}`,
        ),
      ],
      statuses: [400],
    }),
    "huge headers": () => ({
      parts: [
        pick([
          get("/", `X-Big: ${"a".repeat(40_000)}\r\n`),
          get("/", `Cookie: ${"a=b; ".repeat(8_000)}\r\n`),
          get("/", Array.from({ length: 3_000 }, (_, n) => `X-${n}: 1234567890\r\n`).join("")),
          get(`${CONVERSATIONS}?${SINCE}&cursor=${"a".repeat(40_000)}`),
        ]),
      ],
      statuses: [431],
    }),
    "wrong methods": () => ({
      parts: [
        `${pick(["DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "QUERY"])} ${pick(LISTS)} HTTP/1.1\r\nHost: localhost\r\n${auth}Connection: close\r\n\r\n`,
      ],
      statuses: [405],
    }),
    "methods that do not exist": () => ({
      parts: [`${pick(["get", "FOO", "G E T", "", "GETT", "\x00"])} / HTTP/1.1\r\nHost: localhost\r\n\r\n`],
      statuses: [400],
      hangUp: true,
    }),
    "no HTTP": () => ({
      parts: [
        pick([
          "GET /nowhere HTTP/9.9\r\n\r\n",
          "GET /nowhere\r\n\r\n",
          `GET ${CONVERSATIONS} HTTP/1.1\r\n\r\n`,
          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
          Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10]),
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: nonsense\r\n\r\n",
          "GET /nowhere HTTP/1.1\r\nHost: a\r\nBad Header: 1\r\n\r\n",
          "GET /nowhere HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
          "GET /nowhere HTTP/1.1\nHost: a\nX: 1\n\n",
        ]),
      ],
      statuses: [400, 404],
      hangUp: true,
    }),
    "bodies over the limit": () => ({
      parts: pick([
        post(pick(POSTS), `Content-Type: application/json\r\nContent-Length: ${LIMIT + 1}\r\n`, "{"),
        post(pick(LISTS), `Content-Length: ${"9".repeat(15)}\r\n`, "x"),
        post(pick(POSTS), `Content-Length: ${LIMIT * 1_000}\r\nExpect: 100-continue\r\n`, ""),
      ]),
      statuses: [413],
    }),
    "bodies that are no JSON": () => ({
      parts: (() => {
        const body = pick<string | Buffer>([
          "",
          "{",
          "nonsense",
          "[".repeat(60_000),
          '{"a":'.repeat(12_000),
          Buffer.from([0xff, 0xfe, 0x7b]),
          Buffer.from('{"email":"\xed\xa0\x80"}', "latin1"),
          "NaN",
          "{'type':'ERASURE'}",
        ]);
        return post(pick(POSTS), json(body), body);
      })(),
      statuses: [400],
    }),
    "bodies of another shape": () => ({
      parts: (() => {
        const body = pick([
          "null",
          "[]",
          "1",
          '"text"',
          '{"__proto__":{"type":"ERASURE"}}',
          '{"constructor":{"prototype":{"type":"ERASURE"}}}',
          '{"type":"ERASURE","email":{"$gt":""}}',
          '{"type":["ERASURE"],"email":"a@example.com"}',
          '{"campaign_key":1,"language":null,"recipient":[]}',
          `{"type":"ERASURE","email":"${"a".repeat(60_000)}@example.com"}`,
        ]);
        return post(pick(POSTS), json(body), body);
      })(),
      statuses: [400],
    }),
    "bodies of another type": () => ({
      parts: post(
        pick(POSTS),
        pick([
          "Content-Type: text/plain\r\nContent-Length: 2\r\n",
          "Content-Type: application/xml\r\nContent-Length: 2\r\n",
          "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2\r\n",
          "Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n",
          "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n",
          "Content-Length: 2\r\n",
        ]),
        "{}",
      ),
      statuses: [415],
    }),
    "bodies that break off": () => ({
      parts: [`POST ${pick(POSTS)} HTTP/1.1\r\nHost: a\r\n${auth}${json("x".repeat(100))}\r\n{"type"`],
      statuses: [400],
      hangUp: true,
    }),
    "keys that are none": () => ({
      parts: [
        get(
          `${CONVERSATIONS}?${SINCE}`,
          pick([
            "",
            "Authorization: Bearer\r\n",
            "Authorization: Bearer cx_nonsense\r\n",
            `Authorization: Bearer ${"a".repeat(8_000)}\r\n`,
            "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n",
            "Authorization: Bearer \xff\xfe\r\n",
            "Authorization: Bearer a b c\r\n",
          ]),
        ),
      ],
      statuses: [401, 429],
    }),
  };
};

/** Endless and seeded; `auth` is the header line of a good key. */
export const malformedRequests = function* (seed: string, auth: string): Generator<MalformedRequest> {
  const { pick } = createRandom(seed);
  const categories = Object.entries(CATEGORIES(pick, auth));
  for (;;) {
    for (const [kind, make] of categories) yield { kind, ...make() };
  }
};

export const chunkedOverLimit = (auth: string): MalformedRequest => {
  const chunk = "x".repeat(65_536);
  return {
    kind: "chunked bodies over the limit",
    parts: [
      `POST ${POSTS[0]} HTTP/1.1\r\nHost: a\r\n${auth}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      ...Array.from({ length: 80 }, () => `10000\r\n${chunk}\r\n`),
    ],
    statuses: [413],
  };
};
