import { until } from "../system/until.ts";
import type { Pod, Release, ServiceName } from "./release.ts";

export const restartsOf = ({ status }: Pod): number => status.containerStatuses?.[0]?.restartCount ?? 0;

export const firstPod = async (release: Release, service: ServiceName): Promise<Pod> => {
  const [pod] = await release.pods(service);
  if (pod === undefined) throw new Error(`there is no pod of ${service}`);
  return pod;
};

export const untilRestarted = async (
  release: Release,
  service: ServiceName,
  { struck, deadlineMs }: { readonly struck: Pod; readonly deadlineMs: number },
): Promise<void> => {
  const hasRestarted = async (): Promise<boolean> =>
    (await release.pods(service)).some(
      (pod) => pod.metadata.uid === struck.metadata.uid && restartsOf(pod) > restartsOf(struck),
    );
  await until(`${struck.metadata.name} has restarted`, deadlineMs, hasRestarted, 500);
};
