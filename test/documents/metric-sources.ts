import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TYPES: readonly string[] = ["counter", "gauge", "histogram"];

export type MetricSource = {
  readonly file: string;
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
};

const isText = (node: ts.Node | undefined): node is ts.StringLiteral =>
  node !== undefined && ts.isStringLiteral(node);

const labelsOf = (node: ts.Expression | undefined): string[] =>
  node !== undefined && ts.isArrayLiteralExpression(node)
    ? node.elements.filter(isText).map(({ text }) => text)
    : [];

/** A name that is a parameter is followed to the calls in the same file. */
export const readMetricSources = (): MetricSource[] =>
  globSync("{packages,services}/*/src/**/*.ts", { cwd: ROOT })
    .filter((file) => !/\.(test|fixture)\.ts$/.test(file))
    .sort()
    .flatMap(readFile);

const readFile = (file: string): MetricSource[] => {
  const text = readFileSync(join(ROOT, file), "utf8");
  if (!/\b(counter|gauge|histogram)\(/.test(text)) return [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const calls: ts.CallExpression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) calls.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return calls.flatMap((call): MetricSource[] => {
    const { expression, arguments: given } = call;
    if (!ts.isPropertyAccessExpression(expression)) return [];
    const type = expression.name.text;
    const [name, help, labels] = given;
    if (!TYPES.includes(type) || name === undefined || help === undefined) return [];
    const common = { file, type, labels: labelsOf(labels) };
    if (isText(name)) return [{ ...common, name: name.text }];
    const wrapper = wrapperOf(call);
    return calls
      .filter((other) => ts.isIdentifier(other.expression) && other.expression.text === wrapper)
      .flatMap((other) => other.arguments.slice(0, 1).filter(isText))
      .map((literal) => ({ ...common, name: literal.text }));
  });
};

export const wrapperOf = (call: ts.Node): string | undefined => {
  for (let node: ts.Node = call; node.parent !== undefined; node = node.parent) {
    if (
      ts.isArrowFunction(node) &&
      ts.isVariableDeclaration(node.parent) &&
      ts.isIdentifier(node.parent.name)
    ) {
      return node.parent.name.text;
    }
  }
  return undefined;
};
