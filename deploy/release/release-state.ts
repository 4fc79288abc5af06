export type ReleaseState = {
  readonly changes: string;
  readonly version: string;
  readonly chart: { readonly version: string; readonly appVersion: string };
  readonly changelog: string;
};

export const releaseProblems = ({ changes, version, chart, changelog }: ReleaseState): string[] => {
  const problems: string[] = [];
  if (changes !== "") problems.push(`the tree has changes that are not committed:\n${changes}`);
  for (const [name, value] of Object.entries(chart)) {
    if (value !== version) problems.push(`${name} of the chart is ${value}, package.json has ${version}`);
  }
  const heading = new RegExp(`^## ${version.replaceAll(".", "\\.")}( |$)`, "m");
  if (!heading.test(changelog)) problems.push(`CHANGELOG.md has no heading "## ${version}"`);
  return problems;
};

export type LeftOut = { readonly part: string; readonly reason: string };

export const reportLeftOut = (
  leftOut: readonly LeftOut[],
  mayBePartial: boolean,
): { readonly lines: readonly string[]; readonly exitCode: 0 | 1 } => {
  const lines = leftOut.map(({ part, reason }) => `left out: ${part} (${reason})`);
  if (lines.length === 0 || mayBePartial) return { lines, exitCode: 0 };
  return { lines: [...lines, "not a whole release: install what is missing, or set PARTIAL=1"], exitCode: 1 };
};

/** A tag moves, a digest does not; null: no problem. */
export const baseImageProblem = (image: string): string | null => {
  if (/@sha256:[0-9a-f]{64}$/.test(image)) return null;
  const [named = ""] = image.split("@");
  return `the base image ${image} has no digest: \`docker buildx imagetools inspect ${named}\` shows it; write it into deploy/Dockerfile, or set NODE_IMAGE=${named}@sha256:…`;
};
