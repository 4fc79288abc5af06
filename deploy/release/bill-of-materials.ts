import { execFileSync } from "node:child_process";

/** The workspaces of the image. */
const IN_IMAGE = ["ingest", "export-api", "jobs", "ops"].map((name) => `services/${name}`);

export type Component = {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly {
    readonly expression?: string;
    readonly license?: { readonly id?: string; readonly name?: string };
  }[];
};

/** Parts of a CycloneDX document that are read here. */
export type BillOfMaterials = {
  readonly serialNumber?: string;
  readonly metadata: { readonly timestamp?: string; readonly component: { readonly name: string } };
  readonly components: readonly Component[];
};

/** What the image has of other projects, in CycloneDX 1.5, from the lock file alone. */
export const readBillOfMaterials = (): BillOfMaterials => {
  const workspaces = IN_IMAGE.map((folder) => `--workspace=${folder}`);
  const format = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only", "--omit=dev"];
  const text = execFileSync("npm", ["sbom", ...format, ...workspaces], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return JSON.parse(text) as BillOfMaterials;
};

/** The same document for the same lock file: without a random number, and with the name of the project. */
export const repeatable = (bill: BillOfMaterials, { name, at }: { name: string; at: string }): string => {
  const { serialNumber: _random, metadata, ...rest } = bill;
  const component = { ...metadata.component, name };
  return `${JSON.stringify({ ...rest, metadata: { ...metadata, timestamp: at, component } }, null, 2)}\n`;
};
