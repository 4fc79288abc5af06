import { z } from "zod";
import { ConfigError } from "../errors.ts";

/** Files and `echo` add line breaks unnoticed. */
export const credential = z
  .string()
  .regex(/^[^\p{Cc}]*$/u, "must not hold a line break or another control character");

type Credentials = { readonly username?: string | undefined; readonly password?: string | undefined };

const ADDRESS = /^([a-z+]+:\/\/)(?:([^/?#]*)@)?(.*)$/is;

const cut = (address: string) => {
  const [, scheme = "", userInfo = "", rest = address] = ADDRESS.exec(address) ?? [];
  const at = userInfo.indexOf(":");
  return {
    scheme,
    rest,
    username: at < 0 ? userInfo : userInfo.slice(0, at),
    password: at < 0 ? "" : userInfo.slice(at + 1),
  };
};

export const withoutCredentials = (address: string): string => {
  const { scheme, rest } = cut(address);
  return scheme + rest;
};

/** Throws a ConfigError when the address already holds a given part. */
export const withCredentials = (
  address: string,
  given: Credentials,
  names: { readonly address: string; readonly username: string; readonly password: string },
): string => {
  const found = cut(address);
  const problems = (["username", "password"] as const)
    .filter((part) => given[part] !== undefined && found[part] !== "")
    .map((part) => `${names[part]}: ${names.address} holds a ${part} too; leave one of the two out`);
  if (problems.length > 0) throw new ConfigError(problems);
  const username = given.username === undefined ? found.username : encodeURIComponent(given.username);
  const password = given.password === undefined ? found.password : encodeURIComponent(given.password);
  const userInfo = password === "" ? username : `${username}:${password}`;
  return `${found.scheme}${userInfo === "" ? "" : `${userInfo}@`}${found.rest}`;
};
