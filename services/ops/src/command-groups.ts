import type { Command } from "commander";
import type { ProgramDeps } from "./commands/command-deps.ts";

export type CommandSet = {
  readonly descriptions: Readonly<Record<string, string>>;
  /** Loading takes most of the time of a short command. */
  readonly load: () => Promise<(program: Command, deps: ProgramDeps) => void>;
};

export const COMMAND_GROUPS: Readonly<Record<string, readonly CommandSet[]>> = {
  "Set up:": [
    {
      descriptions: {
        migrate: "apply the pending migrations of the warehouse",
        grants: "print the statements that give the users of the services their rights",
        topics: "the topics of events and dead letters",
        schemas:
          "print the JSON Schema of the events and the AsyncAPI document of the topics, or write them to files",
      },
      load: async () => (await import("./commands/setup-commands.ts")).addSetupCommands,
    },
  ],
  "Access:": [
    {
      descriptions: {
        clients: "the clients whose records may be read",
      },
      load: async () => (await import("./access/client-commands.ts")).addClientCommands,
    },
    {
      descriptions: {
        keys: "the API keys of clients",
      },
      load: async () => (await import("./access/key-commands.ts")).addKeyCommands,
    },
    {
      descriptions: {
        campaigns: "the campaigns that clients may trigger by SMS",
      },
      load: async () => (await import("./access/campaign-commands.ts")).addCampaignCommands,
    },
  ],
  "Watch:": [
    {
      descriptions: {
        status: "show on one screen how everything is, with a mark where an alert would fire",
      },
      load: async () => (await import("./commands/status-command.ts")).addStatusCommand,
    },
    {
      descriptions: {
        doctor: "check every server, setting, grant and topic, and say what to do",
      },
      load: async () => (await import("./commands/doctor-command.ts")).addDoctorCommand,
    },
    {
      descriptions: {
        windows: "list the upload windows: rows uploaded, and which are closed, compacted or backfilled",
      },
      load: async () => (await import("./commands/windows-command.ts")).addWindowsCommand,
    },
    {
      descriptions: {
        audit: "list who changed what: commands of operators, and erasures",
      },
      load: async () => (await import("./audit/audit-command.ts")).addAuditCommand,
    },
    {
      descriptions: {
        jobs: "the jobs of the queues: running, waiting and ended",
      },
      load: async () => (await import("./commands/job-commands.ts")).addJobCommands,
    },
  ],
  "Maintain records:": [
    {
      descriptions: {
        backfill: "compute the records of a window again from stored events, with the current code",
      },
      load: async () => (await import("./commands/backfill-command.ts")).addBackfillCommand,
    },
    {
      descriptions: {
        offsets: "the offsets from which ingest reads the bus",
      },
      load: async () => (await import("./commands/offsets-commands.ts")).addOffsetsCommands,
    },
    {
      descriptions: {
        "dead-letters": "events that were rejected: list, show and replay them",
      },
      load: async () => (await import("./commands/dead-letter-commands.ts")).addDeadLetterCommands,
    },
    {
      descriptions: {
        erase: "erase all records of a person, or continue a request",
      },
      load: async () => (await import("./erasure/erase-command.ts")).addEraseCommand,
    },
    {
      descriptions: {
        "erase-again": "after a restore: erase again what was erased since the backup",
      },
      load: async () => (await import("./erasure/erase-again-command.ts")).addEraseAgainCommand,
    },
    {
      descriptions: {
        compact: "drop superseded entries of closed upload windows",
        reconcile: "compare the events of the bus with the readable records; fails when records are missing",
        retention: "delete the records that are older than the retention of their client",
      },
      load: async () => (await import("./commands/upkeep-commands.ts")).addUpkeepCommands,
    },
  ],
};
