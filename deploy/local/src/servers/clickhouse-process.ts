import { DataType, load, open } from "ffi-rs";

const [libraryPath, ...serverArguments] = process.argv.slice(2);
if (libraryPath === undefined) throw new Error("the path of libchdb is missing");
const commandLine = ["clickhouse", ...serverArguments];

open({ library: "libchdb", path: libraryPath });
// Serves until the server stops or fails; libchdb writes the reason to stderr.
load({
  library: "libchdb",
  funcName: "query_stable_v2",
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [commandLine.length, commandLine],
});
// Skips exit handlers, since the library's threads are in an unknown state.
load({
  library: "libchdb",
  funcName: "_exit",
  retType: DataType.Void,
  paramsType: [DataType.I32],
  paramsValue: [1],
});
