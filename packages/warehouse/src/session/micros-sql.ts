/** A parameter in µs as DateTime64(6). */
export const micros = (parameter: string): string => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;
