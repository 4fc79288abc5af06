export type Family = {
  readonly name: string;
  readonly type: string;
  /** Without those of its type. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
};

const OWN_LABELS: Readonly<Record<string, string>> = { histogram: "le", summary: "quantile" };

export const seriesNames = ({ name, type }: Pick<Family, "name" | "type">): string[] =>
  type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];

export const readExposition = (text: string, ignored: readonly string[]): Map<string, Family> => {
  type Growing = Omit<Family, "labels"> & { readonly labels: Map<string, Set<string>> };
  const families = new Map<string, Growing>();
  const bySeries = new Map<string, Growing>();
  for (const line of text.split("\n")) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) {
      const family = { name, type, labels: new Map<string, Set<string>>() };
      families.set(name, family);
      for (const series of seriesNames(family)) bySeries.set(series, family);
      continue;
    }
    const [, series = "", given = ""] = /^([\w:]+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    const family = bySeries.get(series);
    if (family === undefined) continue;
    for (const [, label = "", value = ""] of given.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      if (ignored.includes(label) || label === OWN_LABELS[family.type]) continue;
      family.labels.set(label, (family.labels.get(label) ?? new Set<string>()).add(value));
    }
  }
  return families;
};
