// For tests and the demonstration.
export { runCommand } from "./run-command.ts";
