import { type ExportedRecord, normaliseExported } from "../reference/index.ts";
import type { ExportList } from "./every-list.ts";

type Seen = { readonly id: string; readonly date: string; readonly stamp: string; readonly text: string };

export type ListMonitor = {
  take(pages: readonly (readonly string[])[]): string[];
};

/** A record comes again only at a later date and no older; `everyone`: ids on every page. */
export const createListMonitor = (deps: {
  readonly list: ExportList;
  readonly stamp: string;
  readonly steady: readonly ExportedRecord[];
  readonly everyone: ReadonlySet<string> | null;
}): ListMonitor => {
  const { list, stamp, steady, everyone } = deps;
  const steadyIds = new Set(steady.map(({ id }) => id));
  const date = `date_${list.by}`;
  const latest = new Map<string, string>();

  const seenOf = (text: string): Seen => {
    const record = JSON.parse(text) as Record<string, string>;
    return { id: record["_id"] ?? "", date: record[date] ?? "", stamp: record[stamp] ?? "", text };
  };

  const problemsOfPage = (page: readonly Seen[]): string[] => {
    const ids = page.map(({ id }) => id);
    const repeated = ids.filter((id, index) => ids.indexOf(id) < index).map((id) => `twice on a page: ${id}`);
    if (everyone === null) return repeated;
    const shown = new Set(ids);
    return [...repeated, ...[...everyone].filter((id) => !shown.has(id)).map((id) => `not there: ${id}`)];
  };

  return {
    take: (pages) => {
      const problems: string[] = [];
      const walked = pages.map((page) => page.map(seenOf));
      for (const page of walked) problems.push(...problemsOfPage(page));
      let last: Seen | undefined;
      for (const seen of walked.flat()) {
        const { id, date: at } = seen;
        if (last !== undefined && (last.date > at || (last.date === at && last.id >= id)))
          problems.push(`out of order: ${id} of ${at} behind ${last.id} of ${last.date}`);
        last = seen;
        const known = latest.get(id) ?? "";
        if (seen.stamp < known) problems.push(`went back: ${id} from ${known} to ${seen.stamp}`);
        latest.set(id, seen.stamp);
      }
      const unchanged = walked.flat().filter(({ id }) => steadyIds.has(id));
      const found = unchanged.map(({ text }) => normaliseExported(text).json);
      const wanted = steady.map(({ json }) => json);
      if (found.length !== wanted.length)
        problems.push(`${found.length} of ${wanted.length} that do not change`);
      const at = wanted.findIndex((json, index) => json !== found[index]);
      if (at !== -1) problems.push(`changed: ${found[at]} instead of ${wanted[at]}`);
      return problems;
    },
  };
};
