/** `startMs`: outside the tests, such as imports. */
export interface FileTime {
  readonly project: string;
  readonly file: string;
  readonly tests: number;
  readonly testsMs: number;
  readonly startMs: number;
}

const DEAREST = 30;
const seconds = (ms: number): string => (ms / 1000).toFixed(1);

export function describeTimes(files: readonly FileTime[]): string {
  const row = (...cells: (string | number)[]): string => `| ${cells.join(" | ")} |`;
  const total = (of: readonly FileTime[], key: "tests" | "testsMs" | "startMs"): number =>
    of.reduce((sum, one) => sum + one[key], 0);
  const cells = (of: readonly FileTime[]): string[] => [
    String(total(of, "tests")),
    seconds(total(of, "startMs") + total(of, "testsMs")),
    seconds(total(of, "startMs")),
  ];
  const projects = [...new Set(files.map(({ project }) => project))];
  const dearest = [...files].sort((a, b) => b.startMs + b.testsMs - a.startMs - a.testsMs).slice(0, DEAREST);
  return [
    row("project", "files", "tests", "seconds", "of these start-up"),
    row("---", "---:", "---:", "---:", "---:"),
    ...projects.map((name) => {
      const own = files.filter(({ project }) => project === name);
      return row(name, own.length, ...cells(own));
    }),
    "",
    row(`dearest ${dearest.length} files`, "tests", "seconds", "of these start-up"),
    row("---", "---:", "---:", "---:"),
    ...dearest.map((one) => row(one.file, ...cells([one]))),
    "",
  ].join("\n");
}
