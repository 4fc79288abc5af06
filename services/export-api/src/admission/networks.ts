import ipaddr from "ipaddr.js";

/** What proxies forward that is no address counts together. */
const UNKNOWN = "unknown";

/** Groups of 16 bits: the /64 that one subscriber usually has, and the /48 of a site. */
const PREFIXES = [4, 3] as const;

/** Some proxies forward `address:port`. */
const withoutPort = (text: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;

/**
 * The networks whose failures count together, the narrowest first: an IPv4 address as it is, of an IPv6
 * address its /64 and its /48.
 */
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
