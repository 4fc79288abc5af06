export type Operation = {
  readonly name: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly scope: "export" | "end_users" | "compliance" | "campaigns";
  readonly body?: unknown;
};

export const WHOLE = { since: "1970-01-01T00:00:00Z", to: "2105-12-31T00:00:00Z" } as const;

export const CAMPAIGN = "spring";

const LEGACY_VERSIONS = ["v1", "v1.1", "v1.2"];
const LEGACY_LISTS = ["conversations", "messages"];
const LEGACY_PREFIXES = ["", "/api"];

export const LEGACY_PATHS = LEGACY_PREFIXES.flatMap((prefix) =>
  LEGACY_VERSIONS.flatMap((version) => LEGACY_LISTS.map((list) => `${prefix}/data_api/${version}/${list}`)),
);
/** Half of them: every two of prefix, version and list meet. */
export const LEGACY_PAIRS = LEGACY_VERSIONS.flatMap((version, row) =>
  LEGACY_LISTS.map((list, column) => `${LEGACY_PREFIXES[(row + column) % 2]}/data_api/${version}/${list}`),
);

const READ_WINDOW = `created_since=${WHOLE.since}&created_to=${WHOLE.to}`;
const get = (name: string, path: string, scope: Operation["scope"]): Operation => ({
  name,
  method: "GET",
  path,
  scope,
});
const post = (name: string, path: string, scope: Operation["scope"], body: unknown): Operation => ({
  name,
  method: "POST",
  path,
  scope,
  body,
});

export const EXPORT_OPERATIONS: readonly Operation[] = [
  get("conversations by creation", `/api/v2/export/conversations?${READ_WINDOW}`, "export"),
  get(
    "conversations by update",
    `/api/v2/export/conversations?${READ_WINDOW.replaceAll("created", "updated")}`,
    "export",
  ),
  get("messages", `/api/v2/export/messages?${READ_WINDOW}`, "export"),
];

const legacy = (path: string): Operation => get(path, `${path}?${READ_WINDOW}`, "export");
export const LEGACY_OPERATIONS: readonly Operation[] = LEGACY_PAIRS.map(legacy);
export const ALL_LEGACY_OPERATIONS: readonly Operation[] = LEGACY_PATHS.map(legacy);

const ERASURE = { type: "ERASURE", email: "noor@example.com" };

/** Operations that answer 200 without any record; legacy ones as pairs. */
export const OPERATIONS: readonly Operation[] = [
  ...EXPORT_OPERATIONS,
  get("end users", "/api/v2/end-users", "end_users"),
  get("end users, with a slash", "/api/v2/end-users/", "end_users"),
  post("erasure request, v1", "/api/v1/data-subject-request", "compliance", ERASURE),
  post("erasure request, v2", "/api/v2/data-subject-request", "compliance", ERASURE),
  post("SMS trigger", "/api/campaigns/sms/trigger", "campaigns", {
    campaign_key: CAMPAIGN,
    language: "en",
    recipient: { meta_fields: { phone_number: "+15550199123" } },
  }),
  ...LEGACY_OPERATIONS,
];
