import type { Events } from "../events.ts";
import { forwardPort } from "../local-port.ts";
import { guideBlocks } from "../guide.ts";
import { nameOf, type Release } from "../release.ts";
import { runScript } from "../shell.ts";
import type { Steps } from "../step.ts";

export const compareAll = async (deps: {
  readonly release: Release;
  readonly steps: Steps;
  readonly events: Events;
  readonly keys: ReadonlyMap<string, string>;
}): Promise<void> => {
  const { release, steps, events, keys } = deps;
  await steps.step("every event readable once", {}, async () => {
    await events.finish();
    const forwarded = await forwardPort(release.namespace, nameOf("export-api"));
    try {
      const differences = await events.differences(`http://127.0.0.1:${forwarded.port}/api`, keys);
      if (differences.length > 0) throw new Error(differences.join("\n"));
    } finally {
      await forwarded.stop();
    }
    return `${events.sent()} events`;
  });
};

export const uninstall = async (deps: {
  readonly release: Release;
  readonly steps: Steps;
  readonly registry: string;
  readonly folder: string;
}): Promise<void> => {
  const { release, steps, registry, folder } = deps;
  const [commands = "false"] = guideBlocks("Uninstall", { namespace: release.namespace, registry });
  await steps.step("uninstall", {}, async () => {
    await runScript(commands, { cwd: folder });
    const left = await release.allPods();
    if (left.length > 0)
      throw new Error(`pods are left: ${left.map(({ metadata }) => metadata.name).join(", ")}`);
    return "nothing runs any more";
  });
};
