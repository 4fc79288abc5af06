import { closestMatch } from "leven";
import { API_PREFIX } from "./service-address.ts";

const MOST_EDITS = 2;

/** Not an entrance such as `/api`, nor a wildcard. */
const OF_OPERATION = /^\/[^/*]+\/[^*]+$/;

const pathnameOf = (target: string): string => {
  const path = target.split("?", 1)[0] ?? "";
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
};

const toPattern = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(/[.+]/g, "\\$&").replaceAll(/:\w+/g, "[^/]+").replaceAll("*", ".*")}$`);

export const createPathMethods = () => {
  const entries = new Map<string, { pattern: RegExp; methods: string[] }>();
  return {
    add: (path: string, methods: readonly string[]): void => {
      const entry = entries.get(path);
      if (entry === undefined) entries.set(path, { pattern: toPattern(path), methods: [...methods] });
      else entry.methods.push(...methods);
    },
    of: (target: string): readonly string[] | undefined => {
      const pathname = pathnameOf(target);
      return [...entries.values()].find(({ pattern }) => pattern.test(pathname))?.methods;
    },
    /** The most similar path, with `{id}` for a parameter. */
    closest: (target: string): string | undefined => {
      const paths = [...entries].filter(([path]) => OF_OPERATION.test(path));
      const pathname = pathnameOf(target)
        .replaceAll(/\/{2,}/g, "/")
        .replace(/(?<=.)\/$/, "");
      const meant =
        [pathname, API_PREFIX + pathname]
          .map((path) => paths.find(([, { pattern }]) => pattern.test(path))?.[0])
          .find((path) => path !== undefined) ??
        closestMatch(
          pathname,
          paths.map(([path]) => path),
          { maxDistance: MOST_EDITS },
        );
      return meant?.replaceAll(/:(\w+)/g, "{$1}");
    },
  };
};
