import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { wrapperOf } from "./metric-sources.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LEVELS: readonly string[] = ["info", "warn", "error", "fatal"];

/** `whole` false: a value follows the text. */
export type LogMessage = {
  readonly file: string;
  readonly level: string;
  readonly text: string;
  readonly whole: boolean;
};

/** Only literal texts are known. */
const textsOf = (node: ts.Expression): { text: string; whole: boolean }[] => {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
    return [{ text: node.text, whole: true }];
  }
  if (ts.isTemplateExpression(node)) return [{ text: node.head.text, whole: false }];
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  return [];
};

/** At `info` or above. */
export const readLogMessages = (): LogMessage[] => sourceFiles().flatMap(readFile);

const sourceFiles = (): string[] =>
  globSync("{packages,services}/*/src/**/*.ts", { cwd: ROOT })
    .filter((file) => !/\.(test|fixture)\.ts$/.test(file) && !file.startsWith("services/ops/"))
    .sort();

const callsOf = (file: string): ts.CallExpression[] => {
  const text = readFileSync(join(ROOT, file), "utf8");
  const calls: ts.CallExpression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) calls.push(node);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return calls;
};

export type LogField = { readonly file: string; readonly field: string };

/** At `info` or above. */
export const readLogFields = (): LogField[] =>
  sourceFiles().flatMap((file) =>
    callsOf(file).flatMap(({ expression, arguments: [given] }) => {
      const names = [...LEVELS, "child"];
      if (!ts.isPropertyAccessExpression(expression) || !names.includes(expression.name.text)) return [];
      if (!/\blog$/.test(expression.expression.getText()) || given === undefined) return [];
      if (!ts.isObjectLiteralExpression(given)) return [];
      return given.properties.flatMap(({ name }) =>
        name !== undefined && (ts.isIdentifier(name) || ts.isStringLiteral(name))
          ? [{ file, field: name.text }]
          : [],
      );
    }),
  );

const readFile = (file: string): LogMessage[] => {
  const calls = callsOf(file);
  return calls.flatMap((call): LogMessage[] => {
    const { expression, arguments: given } = call;
    if (!ts.isPropertyAccessExpression(expression)) return [];
    const level = expression.name.text;
    const message = given.at(-1);
    if (!LEVELS.includes(level) || !/\blog$/.test(expression.expression.getText()) || message === undefined) {
      return [];
    }
    const wrapper = ts.isIdentifier(message) ? wrapperOf(call) : undefined;
    const messages =
      wrapper === undefined
        ? [message]
        : calls
            .filter((other) => ts.isIdentifier(other.expression) && other.expression.text === wrapper)
            .flatMap((other) => other.arguments.slice(0, 1));
    return messages.flatMap(textsOf).map((one) => ({ file, level, ...one }));
  });
};
