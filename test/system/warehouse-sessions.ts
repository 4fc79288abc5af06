import { createSession, type Session, type Topology } from "@conversation-export/warehouse";

export type WarehouseSessions = {
  open(url: string, topology?: Topology): Session;
  close(): Promise<void>;
};

export const createSessions = (): WarehouseSessions => {
  const opened: { close(): Promise<void> }[] = [];
  return {
    open: (url, topology = { cluster: null }) => {
      const session = createSession({ url, application: "test", topology });
      opened.push(session);
      return session;
    },
    close: async () => {
      await Promise.all(opened.splice(0).map((session) => session.close()));
    },
  };
};
