import type { Command } from "commander";
import type { ProgramDeps } from "./command-deps.ts";
import { examine } from "../doctor/examine.ts";
import { exitCodeOfFindings, renderFindings } from "../doctor/finding.ts";
import { renderJson } from "../output/print.ts";

export const addDoctorCommand = (program: Command, { env, print, setExitCode }: ProgramDeps): void => {
  program
    .command("doctor")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
States: ok; warning (works, but may cause trouble); problem; away (a server does not answer); skipped (not checked).
Exit code: 0 no problem, 1 a problem, 3 a server does not answer. It changes nothing;
Redis gets a key that lasts for a second.

It also checks the users of the services that are given by CLICKHOUSE_WRITER_URL, CLICKHOUSE_READER_URL,
CLICKHOUSE_LOOKUP_URL, CLICKHOUSE_INTAKE_URL, CLICKHOUSE_JOBS_URL and CLICKHOUSE_ANALYST_URL, or by _USER and _PASSWORD
instead of _URL for the server of CLICKHOUSE_URL. Set SUPPRESSION_SECRET, CURSOR_SECRET, LANDING, LANDING_DAYS and KAFKA_GROUP_ID as for the services.

Examples:
  export-ops doctor
  export-ops doctor --json`,
    )
    .action(async ({ json = false }: { json?: boolean }) => {
      const findings = await examine(env);
      print(json ? renderJson(findings) : renderFindings(findings));
      setExitCode(exitCodeOfFindings(findings));
    });
};
