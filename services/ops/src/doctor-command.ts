import type { Command } from "commander";
import type { CommandDeps } from "./command-deps.ts";
import { examine } from "./doctor/examine.ts";
import { exitCodeOfFindings, renderFindings } from "./doctor/finding.ts";
import type { ExitCode } from "./exit-code.ts";
import { renderJson } from "./print.ts";

/** Looks at everything that the service rests on. */
export const addDoctorCommand = (
  program: Command,
  { print }: CommandDeps,
  end: (code: ExitCode) => void,
): void => {
  program
    .command("doctor")
    .description("look at every server, setting, grant and topic, and say what to do")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
States: ok; warning, works but may bring trouble; problem; away, a server does not answer; skipped, not looked at.
Ends with 0 without a problem, 1 with one, 3 when a server does not answer. It changes nothing.

With CLICKHOUSE_WRITER_URL, CLICKHOUSE_READER_URL, CLICKHOUSE_INTAKE_URL and CLICKHOUSE_JOBS_URL, or _USER and _PASSWORD
in the place of _URL for the server of CLICKHOUSE_URL, it checks the users of the services too; SUPPRESSION_SECRET, CURSOR_SECRET, LANDING, LANDING_DAYS and KAFKA_GROUP_ID are to be as the services
have them.

Examples:
  export-ops doctor
  export-ops doctor --json`,
    )
    .action(async ({ json = false }: { json?: boolean }) => {
      const findings = await examine();
      print(json ? renderJson(findings) : renderFindings(findings));
      end(exitCodeOfFindings(findings));
    });
};
