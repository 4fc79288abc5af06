import { isIPv6 } from "node:net";
import type { RateWindow } from "@conversation-export/domain";
import { createMemoryLimiter } from "@conversation-export/queue";
import { rateLimitExceeded } from "./api-error.ts";
import { describeRate } from "./rate-limit.ts";

const MAX_ADDRESSES = 10_000;
const DEFAULT_WINDOWS: readonly RateWindow[] = [{ requests: 20, seconds: 60 }];
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const IPV6_GROUPS = 8;
const NETWORK_GROUPS = 4;

/** Slows down who tries keys. Counts in this process: each replica allows the windows once. */
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
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%", 1).join("").toLowerCase().split("::");
  const front = groupsOf(head);
  const back = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array.from({ length: IPV6_GROUPS - front.length - back.length }, () => "0");
  return `${[...front, ...zeros, ...back].slice(0, NETWORK_GROUPS).join(":")}::/64`;
};

/** Groups without leading zeros; an IPv4 address at the end stands for two. */
const groupsOf = (text: string): string[] =>
  text
    .split(":")
    .filter((group) => group !== "")
    .flatMap((group) => (group.includes(".") ? [group, group] : [group.replace(/^0+(?=.)/, "")]));
