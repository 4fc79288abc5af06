import { spawnSync } from "node:child_process";

export type ImageTarget = {
  readonly tag: string;
  readonly file: string;
  readonly values: Readonly<Record<string, string>>;
  readonly options?: readonly string[];
};

export type Builder = {
  readonly name: string;
  readonly build: (target: ImageTarget) => string[];
  /** As `docker save` does. */
  readonly save: (target: ImageTarget) => string[];
};

const DOCKERFILE = "deploy/Dockerfile";

const build =
  (...own: readonly string[]) =>
  ({ tag, values, options = [] }: ImageTarget): string[] => [
    "build",
    ...own,
    "--file",
    DOCKERFILE,
    "--tag",
    tag,
    ...Object.entries(values).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
    ...options,
    ".",
  ];

/** docker last, since it needs a daemon. */
export const BUILDERS: readonly Builder[] = [
  {
    name: "buildah",
    build: build("--format", "docker", "--layers"),
    save: ({ tag, file }) => ["push", "--quiet", tag, `docker-archive:${file}:${tag}`],
  },
  {
    name: "podman",
    build: build("--format", "docker", "--layers"),
    save: ({ tag, file }) => ["save", "--format", "docker-archive", "--output", file, tag],
  },
  { name: "docker", build: build(), save: ({ tag, file }) => ["save", "--output", file, tag] },
];

/** Null: it works. */
export type Probe = (program: string) => string | null;

/** `docker version` asks the daemon too. */
export const probeBuilder: Probe = (program) => {
  const { status, error, stderr } = spawnSync(program, ["version"], { encoding: "utf8" });
  if (error !== undefined) return "is not installed";
  return status === 0 ? null : stderr.trim().split("\n").at(-1) || "does not work";
};

export const findBuilder = (wanted: string | undefined, probe: Probe): Builder => {
  const known = BUILDERS.map(({ name }) => name).join(", ");
  const candidates = wanted === undefined ? BUILDERS : BUILDERS.filter(({ name }) => name === wanted);
  if (candidates.length === 0) throw new Error(`BUILDER=${wanted} is none of ${known}`);
  const troubles: string[] = [];
  for (const builder of candidates) {
    const trouble = probe(builder.name);
    if (trouble === null) return builder;
    troubles.push(`  ${builder.name}: ${trouble}`);
  }
  throw new Error(`no image without a builder, one of ${known}:\n${troubles.join("\n")}`);
};
