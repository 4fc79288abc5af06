import ipaddr from "ipaddr.js";

const UNKNOWN = "unknown";

/** 16-bit groups: a subscriber's /64, a site's /48. */
const PREFIXES = [4, 3] as const;

/** Some proxies forward `address:port`. */
const withoutPort = (text: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;

/** The narrowest first; their failures count together. */
export const networksOf = (text: string): readonly [string, ...string[]] => {
  const address = withoutPort(text);
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return [address];
  if (!ipaddr.IPv6.isValid(address)) return [UNKNOWN];
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return [parsed.toIPv4Address().toString()];
  const [subscriber, site] = PREFIXES.map((groups) => {
    const network = parsed.parts.slice(0, groups).map((group) => group.toString(16));
    return `${network.join(":")}::/${groups * 16}`;
  });
  return [subscriber ?? UNKNOWN, site ?? UNKNOWN];
};
