import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { IForbiddenRuleType } from "dependency-cruiser";

/** Imports allowed to the files of a folder, in addition to each other. */
interface Allowance {
  readonly folder: string;
  readonly packages: readonly string[];
  readonly workspaces?: readonly string[];
  readonly npm: readonly string[];
  readonly node: boolean;
}

/** Everything else records spans through packages/runtime. */
const TRACING = [
  "@opentelemetry/api",
  "@opentelemetry/context-async-hooks",
  "@opentelemetry/exporter-trace-otlp-proto",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
];

const CLIENT = "packages/client";

const PACKAGES: readonly Allowance[] = [
  { folder: "packages/domain", packages: [], npm: ["zod"], node: false },
  {
    folder: "packages/runtime",
    packages: [],
    npm: [...TRACING, "@prometheus-io/client", "pino", "zod"],
    node: true,
  },
  {
    folder: "packages/bus",
    packages: ["domain", "runtime"],
    npm: [
      "@aws-sdk/credential-providers",
      "@node-rs/crc32",
      "aws-msk-iam-sasl-signer-js",
      "kafkajs",
      "lz4-napi",
      "snappy",
    ],
    node: true,
  },
  {
    folder: "packages/warehouse",
    packages: ["domain", "runtime"],
    npm: ["@clickhouse/client", "lru-cache"],
    node: true,
  },
  {
    folder: "packages/queue",
    packages: ["domain", "runtime"],
    npm: [
      "@bull-board/api",
      "@bull-board/fastify",
      "@fastify/basic-auth",
      "bullmq",
      "fastify",
      "ioredis",
      "lru-cache",
      "zod",
    ],
    node: true,
  },
  { folder: "packages/suppression", packages: ["domain", "runtime"], npm: [], node: true },
  { folder: CLIENT, packages: [], npm: ["@duckdb/node-api"], node: true },
];

const nameOf = ({ folder }: Allowance): string => folder.replace("packages/", "");
const ALL_PACKAGES = PACKAGES.map(nameOf);
/** Only tests import the client. */
const SERVER_PACKAGES = PACKAGES.filter(({ folder }) => folder !== CLIENT).map(nameOf);
/** Services must use the packages that wrap them. */
const VENDORS = [
  ...TRACING,
  "@aws-sdk/credential-providers",
  "@node-rs/crc32",
  "aws-msk-iam-sasl-signer-js",
  "kafkajs",
  "lz4-napi",
  "snappy",
  "@clickhouse/client",
  "bullmq",
  "ioredis",
];
/** Ingest must run without Redis. */
const CLOSED: Readonly<Record<string, readonly string[]>> = { "services/ingest": ["queue"] };
const TEST_TOOLS = ["vitest", "fast-check"];
const TEST_CODE = "\\.(test|fixture)\\.ts$";

export function importRules(root: string): IForbiddenRuleType[] {
  const services = foldersIn(root, "services").map((folder) => ({
    folder,
    packages: SERVER_PACKAGES.filter((name) => !CLOSED[folder]?.includes(name)),
    npm: declaredIn(root, folder).filter((name) => !VENDORS.includes(name)),
    node: true,
  }));
  const local = {
    folder: "deploy/local",
    packages: SERVER_PACKAGES,
    npm: declaredIn(root, "deploy/local"),
    node: true,
  };
  const check = { folder: "deploy/check", packages: [], npm: declaredIn(root, "."), node: true };
  const test = {
    folder: "test",
    packages: ALL_PACKAGES,
    workspaces: ["deploy/local", ...services.map(({ folder }) => folder)],
    npm: [...declaredIn(root, "test"), ...TEST_TOOLS],
    node: true,
  };
  return [
    {
      name: "no-cycles",
      comment: "no import cycles",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "resolvable",
      comment: "every import leads to a file or a module of Node",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "packages-known",
      comment: "a new package needs a line in the table of deploy/check/import-rules.ts",
      severity: "error",
      from: { path: `^packages/(?!(${ALL_PACKAGES.join("|")})/)` },
      to: {},
    },
    ...[...PACKAGES, ...services, local, check].flatMap((allowance) => [
      sourceRule(allowance),
      testRule(allowance),
      nameRule(allowance),
    ]),
    testRule(test),
    nameRule(test),
    {
      name: "client-library",
      comment: "the library runs in browsers: nothing of Node, of npm or of the command",
      severity: "error",
      from: { path: `^${CLIENT}/src/(?!command/)`, pathNot: TEST_CODE },
      to: { pathNot: `^${CLIENT}/src/(?!command/)(?!.*${TEST_CODE})` },
    },
    {
      name: "test-source",
      comment: "support, benchmarks and the demonstration import no test files",
      severity: "error",
      from: { path: "^test/", pathNot: TEST_CODE },
      to: { path: TEST_CODE },
    },
  ];
}

function sourceRule(allowance: Allowance): IForbiddenRuleType {
  const { folder, packages, npm, node } = allowance;
  return {
    name: `${ruleName(folder)}-source`,
    comment: `${folder} may import ${[...packages, ...npm, ...(node ? ["node:"] : [])].join(", ")}; no test code`,
    severity: "error",
    from: { path: inside(folder), pathNot: TEST_CODE },
    to: {
      pathNot: [
        `^${folder}/(?!node_modules/)(?!.*${TEST_CODE})`,
        ...othersOf(allowance),
        ...npm.map(npmPath),
      ],
      ...(node ? { dependencyTypesNot: ["core"] } : {}),
    },
  };
}

function testRule(allowance: Allowance): IForbiddenRuleType {
  const { folder, npm } = allowance;
  return {
    name: `${ruleName(folder)}-tests`,
    comment: `tests in ${folder} may import what its source may, the test tools and node:`,
    severity: "error",
    from: { path: folder === "test" ? inside(folder) : `^${folder}/.*${TEST_CODE}` },
    to: {
      pathNot: [inside(folder), ...othersOf(allowance), ...[...npm, ...TEST_TOOLS].map(npmPath)],
      dependencyTypesNot: ["core"],
    },
  };
}

/** A path would bypass the other package.json. */
function nameRule({ folder }: Allowance): IForbiddenRuleType {
  return {
    name: `${ruleName(folder)}-by-name`,
    comment: "other workspaces are imported by their name, not by a path",
    severity: "error",
    from: { path: inside(folder) },
    to: { path: "/src/index\\.ts$", pathNot: inside(folder), dependencyTypesNot: ["aliased-workspace"] },
  };
}

function othersOf({ packages, workspaces }: Allowance): string[] {
  return [...packages.map((name) => `packages/${name}`), ...(workspaces ?? [])].map(
    (folder) => `^${folder}/src/index\\.ts$`,
  );
}

function inside(folder: string): string {
  return `^${folder}/(?!node_modules/)`;
}

function npmPath(name: string): string {
  return `(^|/)node_modules/(@types/)?${name}/`;
}

function ruleName(folder: string): string {
  return folder.replace("/", "-");
}

function foldersIn(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${folder}/${entry.name}`)
    .sort();
}

function declaredIn(root: string, folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Record<
    "dependencies" | "devDependencies" | "optionalDependencies",
    Record<string, string> | undefined
  >;
  return [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies]
    .flatMap((group) => Object.keys(group ?? {}))
    .filter((name) => !name.startsWith("@conversation-export/"));
}
