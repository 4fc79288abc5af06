// The ClickHouse server itself: this process calls libchdb, which serves its ports until the call returns.
import { DataType, load, open } from "ffi-rs";

const [libraryPath, ...serverArguments] = process.argv.slice(2);
if (libraryPath === undefined) throw new Error("the path of libchdb is missing");
const commandLine = ["clickhouse", ...serverArguments];

open({ library: "libchdb", path: libraryPath });
// The call ends when the server is asked to stop or cannot start; libchdb writes the reason to stderr.
load({
  library: "libchdb",
  funcName: "query_stable_v2",
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [commandLine.length, commandLine],
});
// Exits without the exit handlers of the library, whose threads are in an unknown state.
load({
  library: "libchdb",
  funcName: "_exit",
  retType: DataType.Void,
  paramsType: [DataType.I32],
  paramsValue: [1],
});
