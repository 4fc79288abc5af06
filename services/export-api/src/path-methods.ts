/** Tells which methods a path has, for paths with parameters as well. */
export type PathMethods = {
  add(path: string, methods: readonly string[]): void;
  /** undefined: no such path. */
  of(target: string): readonly string[] | undefined;
};

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

export const createPathMethods = (): PathMethods => {
  const entries = new Map<string, { pattern: RegExp; methods: string[] }>();
  return {
    add: (path, methods) => {
      const entry = entries.get(path);
      if (entry === undefined) entries.set(path, { pattern: toPattern(path), methods: [...methods] });
      else entry.methods.push(...methods);
    },
    of: (target) => {
      const pathname = pathnameOf(target);
      return [...entries.values()].find(({ pattern }) => pattern.test(pathname))?.methods;
    },
  };
};
