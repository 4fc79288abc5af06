import { onAllShards } from "./shards.ts";

/** Runs on every shard of a cluster. */
export const runSql = async (
  url: string,
  sql: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const run = onAllShards(new URL(url).origin, sql);
  const answers = run.servers.map((server) => runOn(server, new URL(url), run.sql, parameters));
  return (await Promise.all(answers))[0] ?? "";
};

const runOn = async (
  origin: string,
  { username, password, pathname }: URL,
  sql: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> => {
  const query = new URLSearchParams({
    database: pathname.slice(1),
    distributed_foreground_insert: "1",
    // Permits rows of the past.
    log_comment: "stamped",
  });
  for (const [name, value] of Object.entries(parameters)) query.set(`param_${name}`, value);
  const response = await fetch(`${origin}/?${query.toString()}`, {
    method: "POST",
    body: sql,
    headers: {
      "x-clickhouse-user": decodeURIComponent(username),
      "x-clickhouse-key": decodeURIComponent(password),
    },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`ClickHouse: ${text.slice(0, 2_000)}`);
  return text;
};
