/** Runs one statement over HTTP. `url`: `http://user:password@host:port/database`. */
export const runSql = async (
  url: string,
  sql: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const { username, password, origin, pathname } = new URL(url);
  const query = new URLSearchParams({ database: pathname.slice(1) });
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
  if (!response.ok) throw new Error(`ClickHouse: ${text.slice(0, 300)}`);
  return text;
};
