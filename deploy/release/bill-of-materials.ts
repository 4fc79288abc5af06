import { execFileSync } from "node:child_process";

const IN_IMAGE = ["ingest", "export-api", "jobs", "ops"].map((name) => `services/${name}`);

export type Component = {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly {
    readonly expression?: string;
    readonly license?: { readonly id?: string; readonly name?: string };
  }[];
};

export type BillOfMaterials = {
  readonly serialNumber?: string;
  readonly metadata: { readonly timestamp?: string; readonly component: { readonly name: string } };
  readonly components: readonly Component[];
};

/** From the lock file only. */
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

/** Without the random serial number. */
export const repeatable = (bill: BillOfMaterials, { name, at }: { name: string; at: string }): string => {
  const { serialNumber: _random, metadata, ...rest } = bill;
  const component = { ...metadata.component, name };
  return `${JSON.stringify({ ...rest, metadata: { ...metadata, timestamp: at, component } }, null, 2)}\n`;
};
