import type { RateWindow } from "@conversation-export/domain";
import { createMemoryLimiter } from "@conversation-export/queue";
import ipaddr from "ipaddr.js";
import { rateLimitExceeded } from "../http/api-error.ts";
import { describeRate } from "./rate-limit.ts";

const MAX_ADDRESSES = 10_000;
const DEFAULT_WINDOWS: readonly RateWindow[] = [{ requests: 20, seconds: 60 }];
const NETWORK_GROUPS = 4;

/** Slows down guessing of keys. Counts in this process: each replica allows the windows once. */
export type AuthThrottle = {
  /** Throws `ApiError` 429 while the address has used up its failed authentications. */
  check(address: string): void;
  /** Counts a failed authentication. */
  failed(address: string): void;
  /** Takes one back that turned out not to be one. */
  forgive(address: string): void;
};

/** @param deps.windows failed authentications per address; no windows is no throttle */
export const createAuthThrottle = (
  deps: { readonly windows?: readonly RateWindow[]; readonly now?: () => number } = {},
): AuthThrottle => {
  const { windows = DEFAULT_WINDOWS, now = Date.now } = deps;
  const failures = createMemoryLimiter({ maxKeys: MAX_ADDRESSES, now });
  return {
    check: (address) => {
      if (windows.length === 0) return;
      const { allowed, window, retryAfter } = failures.peek(networkOf(address), windows);
      if (!allowed) throw rateLimitExceeded(describeRate(window, "failed authentication"), retryAfter);
    },
    failed: (address) => {
      if (windows.length > 0) failures.consume(networkOf(address), windows);
    },
    forgive: (address) => {
      if (windows.length > 0) failures.refund(networkOf(address), windows);
    },
  };
};

/** An IPv4 address as it is, of an IPv6 address the /64 network that one subscriber usually has. */
export const networkOf = (address: string): string => {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  const network = parsed.parts.slice(0, NETWORK_GROUPS).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
};
