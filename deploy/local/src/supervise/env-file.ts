/** For a shell. */
export function renderEnvFile(variables: Readonly<Record<string, string>>): string {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
  // Last, for readers of plain NAME=value lines.
  return [...lines, `export ${Object.keys(variables).join(" ")}`, ""].join("\n");
}

function quote(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

export function readPorts<Name extends string>(
  env: NodeJS.ProcessEnv,
  variables: Readonly<Record<Name, string>>,
): Partial<Record<Name, number>> {
  const ports: Partial<Record<Name, number>> = {};
  for (const [name, variable] of Object.entries(variables) as [Name, string][]) {
    const text = env[variable];
    if (text === undefined || text === "") continue;
    const port = Number(text);
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new Error(`${variable} is ${JSON.stringify(text)}, which is not a port (1 to 65535)`);
    }
    ports[name] = port;
  }
  return ports;
}
