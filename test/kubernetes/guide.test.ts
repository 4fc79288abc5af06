import { expect, it } from "vitest";
import { guideBlocks } from "./guide.ts";

it("the guide has the commands of an installation, and of its end", () => {
  const given = { namespace: "trial", registry: "docker.io/library" };
  const [namespace, secret, install, logs, test, ...more] = guideBlocks("Install with Helm", given);
  expect(more).toEqual([]);
  expect(namespace).toContain("kubectl create namespace trial\n");
  expect(namespace).toContain("kubectl label namespace trial pod-security");
  expect(secret).toContain("kubectl -n trial create secret generic conversation-export-credentials ");
  expect(install).toContain("helm install export deploy/charts/conversation-export -n trial -f values.yaml");
  expect(install).toContain("--set image.registry=docker.io/library --wait");
  expect(logs).toContain("kubectl -n trial logs job/export-conversation-export-migrate");
  expect(test).toContain("helm test export -n trial --logs");
  expect(guideBlocks("Uninstall", given)[0]).toMatch(
    /^helm uninstall export -n trial .*--cascade foreground/,
  );
});
