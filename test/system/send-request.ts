export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly type: string | undefined;
  readonly details: string;
};

export const sendRequest = async (request: {
  readonly api: string;
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
}): Promise<Answer> => {
  const { api, key, method, path, body, idempotencyKey, headers } = request;
  const response = await fetch(api + path, {
    method,
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...headers,
    },
  });
  const answer = (await response.json()) as Record<string, unknown>;
  const [error] = (answer["errors"] ?? []) as { type: string; details: string | null }[];
  return {
    status: response.status,
    headers: response.headers,
    body: answer,
    type: error?.type,
    details: error?.details ?? "",
  };
};
