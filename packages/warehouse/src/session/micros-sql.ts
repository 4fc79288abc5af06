/** SQL for a parameter in µs as a DateTime64(6). */
export const micros = (parameter: string): string => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;
