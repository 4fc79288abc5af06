export const throughPort = (url: string, port: number): string => {
  const changed = new URL(url);
  changed.hostname = "127.0.0.1";
  changed.port = String(port);
  return changed.toString();
};
