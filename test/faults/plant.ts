import { registerHooks } from "node:module";

type Bug = { readonly file: string; readonly right: string; readonly wrong: string };

/** Bugs for a process started with `--import` of this file; the sources stay as they are. */
const BUGS: readonly Bug[] = [
  {
    file: "packages/domain/src/event/timestamp.ts",
    right: "zone === MINUS ? -1 : 1",
    wrong: "zone === MINUS ? 1 : -1",
  },
  {
    file: "packages/domain/src/kinds/handoffs.ts",
    right: "const target = handoffId ?? handoff.id;",
    wrong: "const target = handoff.id.length % 2 === 0 ? (handoffId ?? handoff.id) : handoff.id;",
  },
  {
    file: "packages/domain/src/kinds/handoffs.ts",
    right: "const dateCreated = readInstant(",
    wrong:
      "const dateCreated = ((...given: Parameters<typeof readInstant>) => { const read = readInstant(...given); return typeof read === 'number' ? read + (handoff.id.charCodeAt(0) % 2) * 7_200_000_000 : read; })(",
  },
];

const textOf = (source: string | ArrayBuffer | NodeJS.TypedArray): string =>
  typeof source === "string" ? source : new TextDecoder().decode(source);

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    let source = loaded.source === null || loaded.source === undefined ? undefined : textOf(loaded.source);
    for (const { file, right, wrong } of BUGS) {
      if (!url.endsWith(file)) continue;
      const planted = source?.replace(right, wrong);
      if (planted === source) throw new Error(`${file} does not hold: ${right}`);
      source = planted;
    }
    return source === undefined ? loaded : { ...loaded, source };
  },
});
