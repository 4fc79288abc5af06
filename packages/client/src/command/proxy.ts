import * as http from "node:http";
import { UsageError } from "./exit-code.ts";
import type { Environment } from "./settings.ts";

// The installed types of Node.js lack this function.
const { setGlobalProxyFromEnv } = http as { setGlobalProxyFromEnv?: (env: Environment) => void };

/** Lower case wins, as in other programs. */
const firstOf = (env: Environment, name: string): string | undefined =>
  [name, name.toUpperCase()].find((one) => (env[one] ?? "") !== "");

const variableFor = (env: Environment, url: string): string | undefined =>
  firstOf(env, url.startsWith("https:") ? "https_proxy" : "http_proxy");

const isDirect = (env: Environment, url: string): boolean => {
  const text = env[firstOf(env, "no_proxy") ?? ""] ?? "";
  if (text === "*") return true;
  const { hostname, port, protocol } = new URL(url);
  const own = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  return text
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== "")
    .some((entry) => {
      const [, named = "", of] = /^(.+?)(?::(\d+))?$/.exec(entry) ?? [];
      const host = named.replace(/^\*?\./, "");
      return (of === undefined || of === own) && (hostname === host || hostname.endsWith(`.${host}`));
    });
};

/** @throws UsageError without the proxy's value, which may hold a password */
export const useProxy = (env: Environment, url: string): void => {
  const variable = variableFor(env, url);
  if (variable === undefined || setGlobalProxyFromEnv === undefined || isDirect(env, url)) return;
  const proxy = env[variable] ?? "";
  try {
    if (!/^https?:\/\//i.test(proxy)) throw new TypeError("another protocol");
    // Node.js reads a missing one from the environment itself.
    const no_proxy = env[firstOf(env, "no_proxy") ?? ""];
    setGlobalProxyFromEnv({ http_proxy: proxy, https_proxy: proxy, no_proxy });
  } catch {
    throw new UsageError(`${variable}: must be an address that begins with http:// or https://`);
  }
};

export const proxyNote = (env: Environment, url: string): string | null => {
  const variable = variableFor(env, url);
  if (variable === undefined) return null;
  return setGlobalProxyFromEnv === undefined && env["NODE_USE_ENV_PROXY"] !== "1"
    ? `${variable} is set, but Node.js ${process.versions.node} does not use it: take 24.14 or newer, or with 22.21 or newer set NODE_USE_ENV_PROXY=1`
    : `${variable} is set: requests go through that proxy unless no_proxy names the host`;
};
