export type Variables = Readonly<Record<string, string>>;

export const variable = (variables: Variables, name: string): string => {
  const value = variables[name];
  if (value === undefined) throw new Error(`the env file has no ${name}`);
  return value;
};
