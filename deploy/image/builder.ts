import { spawnSync } from "node:child_process";

/** What is built: a tag for the image, and the archive that it is written to. */
export type ImageTarget = {
  readonly tag: string;
  readonly file: string;
  /** Values of the Dockerfile's arguments. */
  readonly values: Readonly<Record<string, string>>;
  /** More options of the builder. */
  readonly options?: readonly string[];
};

/** A program that builds images, and the arguments with which it does. */
export type Builder = {
  readonly name: string;
  readonly build: (target: ImageTarget) => string[];
  /** Writes the image as an archive in the form of `docker save`. */
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

/** In the order in which they are tried: docker needs a daemon. */
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

/** Why a program does not work here; null: it does. */
export type Probe = (program: string) => string | null;

/** Asks a builder for its version; docker asks its daemon for that. */
export const probeBuilder: Probe = (program) => {
  const { status, error, stderr } = spawnSync(program, ["version"], { encoding: "utf8" });
  if (error !== undefined) return "is not installed";
  return status === 0 ? null : stderr.trim().split("\n").at(-1) || "does not work";
};

/**
 * The builder of that name, or the first that works.
 *
 * @throws Error that says of each why it does not work
 */
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
