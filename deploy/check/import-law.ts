import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ICruiseResult, cruise } from "dependency-cruiser";
import { importRules } from "./import-rules.ts";

const SOURCES = ["packages", "services", "deploy/local", "deploy/check", "test"];
const IMPORT = /^(?:import|export)\b(?:[^;"'=]*\bfrom)?\s*["']([^"']+)["']/gm;

interface LawReport {
  readonly modules: number;
  readonly dependencies: number;
  readonly violations: readonly string[];
}

export async function checkImports(root: string): Promise<LawReport> {
  const files = SOURCES.flatMap((folder) =>
    globSync(`${folder}/**/*.ts`, { cwd: root, exclude: (path) => path.includes("node_modules") }),
  );
  const rules = importRules(root);
  const { output } = await cruise(
    SOURCES,
    {
      baseDir: root,
      validate: true,
      ruleSet: { forbidden: rules },
      doNotFollow: { path: "node_modules" },
      tsPreCompilationDeps: true,
      combinedDependencies: true,
    },
    { exportsFields: ["exports"], conditionNames: ["types", "import", "node", "default"] },
  );
  const { modules, summary } = output as ICruiseResult;
  assertSeen(root, files, modules);
  return {
    modules: summary.totalCruised,
    dependencies: summary.totalDependenciesCruised ?? 0,
    violations: summary.violations.map(({ rule: { name }, from, to }) => {
      const comment = rules.find((rule) => rule.name === name)?.comment ?? "";
      return `${name}: ${from} → ${to} (${comment})`;
    }),
  };
}

/** A parser that overlooks imports would report no violations. */
function assertSeen(root: string, files: readonly string[], modules: ICruiseResult["modules"]): void {
  const seen = new Map(modules.map(({ source, dependencies }) => [source, dependencies]));
  const unseen = files.filter((file) => !seen.has(file));
  if (files.length === 0 || unseen.length > 0) {
    throw new Error(`import law: ${files.length} files, overlooked: ${unseen.join(", ")}`);
  }
  for (const file of files) {
    const specifiers = [...readFileSync(join(root, file), "utf8").matchAll(IMPORT)].map(([, name]) => name);
    const found = seen.get(file)?.length ?? 0;
    if (found < new Set(specifiers).size) {
      throw new Error(`import law: ${file} has ${specifiers.length} imports, seen ${found}`);
    }
  }
}

if (import.meta.main) {
  const { modules, dependencies, violations } = await checkImports(process.cwd());
  for (const violation of violations) console.error(violation);
  console.log(`${modules} modules, ${dependencies} dependencies, ${violations.length} violations`);
  if (violations.length > 0) process.exitCode = 1;
}
