/** What `make up` and the demonstration write into the env file. */
export type Variables = Readonly<Record<string, string>>;

/** @throws Error when the env file has no such variable */
export const variable = (variables: Variables, name: string): string => {
  const value = variables[name];
  if (value === undefined) throw new Error(`the env file has no ${name}`);
  return value;
};
