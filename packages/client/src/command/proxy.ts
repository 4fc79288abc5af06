import * as http from "node:http";

type Environment = Readonly<Record<string, string | undefined>>;

// The types are those of an older Node.js.
const { setGlobalProxyFromEnv } = http as { setGlobalProxyFromEnv?: (env: Environment) => void };

/** The variable that names a proxy for an address. */
const variableFor = (env: Environment, url: string): string | undefined => {
  const name = url.startsWith("https:") ? "https_proxy" : "http_proxy";
  return [name, name.toUpperCase()].find((one) => (env[one] ?? "") !== "");
};

/** Sends requests through the proxy that the environment names, where this Node.js can. @throws for a wrong one */
export const useProxy = (env: Environment): void => setGlobalProxyFromEnv?.(env);

/** What to know about a proxy when the service is not reached; null: none is named. */
export const proxyNote = (env: Environment, url: string): string | null => {
  const variable = variableFor(env, url);
  if (variable === undefined) return null;
  return setGlobalProxyFromEnv === undefined && env["NODE_USE_ENV_PROXY"] !== "1"
    ? `${variable} is set, but Node.js ${process.versions.node} does not use it: take 24.14 or newer, or with 22.21 or newer set NODE_USE_ENV_PROXY=1`
    : `${variable} is set: requests go through that proxy unless no_proxy names the host`;
};
