import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

export type Matcher = { readonly label: string; readonly op: string; readonly value: string };
/** Empty: none is named. */
export type Selector = { readonly metric: string; readonly matchers: readonly Matcher[] };
/** `labels`: grouped or joined by. */
export type Query = { readonly selectors: readonly Selector[]; readonly labels: readonly string[] };

/** Replaces Grafana's variables outside strings, which the grammar rejects. */
const fillIn = (expression: string): string =>
  expression.replaceAll(/\$__(rate_interval|interval|range)\b/g, "5m");

const unquote = (text: string): string => JSON.parse(text) as string;

/** Throws when it is no query. */
export const readQuery = (expression: string): Query => {
  const text = fillIn(expression);
  const textOf = (node: SyntaxNode): string => text.slice(node.from, node.to);
  const selectors: Selector[] = [];
  const labels: string[] = [];
  const matcherOf = (node: SyntaxNode): Matcher => {
    const [label, op, value] = [node.getChild("LabelName"), node.getChild("MatchOp"), node.lastChild];
    if (label === null || op === null || value === null) throw new Error(`no matcher: ${textOf(node)}`);
    return { label: textOf(label), op: textOf(op), value: unquote(textOf(value)) };
  };
  const tree = parser.parse(text);
  tree.iterate({
    enter: ({ type, from }) => {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
    },
  });
  tree.iterate({
    enter: ({ type, node }) => {
      if (type.name === "VectorSelector") {
        const name = node.getChild("Identifier");
        const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
        selectors.push({ metric: name === null ? "" : textOf(name), matchers: matchers.map(matcherOf) });
      }
      if (type.name === "GroupingLabels") labels.push(...node.getChildren("LabelName").map(textOf));
    },
  });
  return { selectors, labels };
};
