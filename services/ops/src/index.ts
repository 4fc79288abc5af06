// For tests and the demonstration, which run commands without a process of their own.
export { runCommand } from "./run-command.ts";
