/** Renders variables for a shell to source and export: one `NAME=value` a line, quoted where needed. */
export function renderEnvFile(variables: Readonly<Record<string, string>>): string {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
  // At the end, so that readers of plain NAME=value lines keep working.
  return [...lines, `export ${Object.keys(variables).join(" ")}`, ""].join("\n");
}

function quote(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * Reads the ports that are set by variables.
 *
 * @throws Error for a value that is not a port.
 */
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
