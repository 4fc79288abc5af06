import { UsageError } from "../exit-code.ts";
import { behindLinks, localPath } from "../local-path.ts";

export type TargetPlace =
  | { readonly kind: "output" }
  | { readonly kind: "folder" | "duckdb" | "parquet" | "csv"; readonly path: string };

const WITH_KIND = /^(duckdb|parquet|csv):(.*)$/s;
/** DuckDB expands patterns in paths. */
const PATTERN = /[*?[\]{}]/;

/** @throws UsageError */
export const targetPlace = (to: string): TargetPlace => {
  if (to === "-") return { kind: "output" };
  const [, kind, named] = WITH_KIND.exec(to) ?? [];
  const path = localPath("--to", named ?? to);
  if (kind === undefined) return { kind: "folder", path };
  if (kind === "duckdb") return { kind, path: behindLinks(path) };
  if (PATTERN.test(path)) throw new UsageError(`--to: ${kind}: takes no path with * ? [ ] { or }: ${path}`);
  return { kind: kind as "parquet" | "csv", path };
};
