import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Document, isMap, isNode, isScalar, type Pair, parseDocument, type YAMLMap } from "yaml";

export const CHART = fileURLToPath(new URL("../../deploy/charts/conversation-export/", import.meta.url));

export type ChartValue = { readonly path: string; readonly fallback: unknown; readonly meaning: string };

const MEANING = /^ -- (.+)$/m;

/** The text after `# --`; YAML gives the comment of a first key to its map. */
const meaningOf = (pair: Pair, map: YAMLMap, isFirst: boolean): string | undefined => {
  const key = isScalar(pair.key) ? pair.key.commentBefore : undefined;
  const comment = key ?? (isFirst ? map.commentBefore : undefined) ?? "";
  return MEANING.exec(comment)?.[1];
};

const valuesIn = (document: Document, map: YAMLMap, above: string): ChartValue[] =>
  map.items.flatMap((pair, index) => {
    const path = above + String(isScalar(pair.key) ? pair.key.value : pair.key);
    const meaning = meaningOf(pair, map, index === 0);
    if (meaning !== undefined) {
      return [
        { path, fallback: isNode(pair.value) ? (pair.value.toJS(document) as unknown) : null, meaning },
      ];
    }
    if (isMap(pair.value) && pair.value.items.length > 0) return valuesIn(document, pair.value, `${path}.`);
    throw new Error(`values.yaml: ${path} has no comment that begins with "# --"`);
  });

export const readChartValues = (): ChartValue[] => {
  const document = parseDocument(readFileSync(join(CHART, "values.yaml"), "utf8"));
  if (!isMap(document.contents)) throw new Error("values.yaml is no map");
  return valuesIn(document, document.contents, "");
};

const cell = (text: string): string => text.replaceAll("|", "\\|");

export const renderValuesTable = (values: readonly ChartValue[], credentials: readonly string[]): string => {
  const groups = Map.groupBy(values, ({ path }) => (path.includes(".") ? (path.split(".")[0] ?? "") : ""));
  const tables = [...groups].map(([group, rows]) =>
    [
      `## ${group === "" ? "General" : group}`,
      "",
      "| Value | Default | Meaning |",
      "|---|---|---|",
      ...rows.map(
        ({ path, fallback, meaning }) =>
          `| \`${path}\` | \`${cell(JSON.stringify(fallback))}\` | ${cell(meaning)} |`,
      ),
      "",
    ].join("\n"),
  );
  return [
    "# Values of the chart",
    "",
    "Made from the comments in `deploy/charts/conversation-export/values.yaml` by `make generate`.",
    "",
    "Keys of `externalSecret.data`, which are those of a Secret that the chart makes too:",
    "",
    ...credentials.map((id) => `- \`${id}\``),
    "",
    ...tables,
  ].join("\n");
};
