import type { Admin, PartitionLag } from "@conversation-export/bus";
import type { BusConfig } from "../config.ts";
import { CommandError, innermostMessage } from "../explain/explain.ts";
import { fetchLag } from "./connections.ts";

export const readLag = async (admin: Admin, bus: BusConfig): Promise<PartitionLag[]> => {
  try {
    return await fetchLag(admin, bus);
  } catch (error) {
    throw new CommandError(
      `the lag cannot be read from Kafka for ${bus.topics.join(", ")}: check that \`export-ops topics create\` has created these topics (${innermostMessage(error)})`,
      { cause: error },
    );
  }
};

export const lagOf = (topic: string, partitions: readonly PartitionLag[]): number =>
  partitions.filter((one) => one.topic === topic).reduce((sum, { lag }) => sum + lag, 0);
