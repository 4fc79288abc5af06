import { describe, expect, it } from "vitest";
import { BUILDERS, findBuilder, type ImageTarget } from "./builder.ts";

const TARGET: ImageTarget = {
  tag: "docker.io/library/conversation-export:0.1.0",
  file: "/tmp/image.tar",
  values: { VERSION: "0.1.0" },
  options: ["--network", "host"],
};

describe("the builder of images", () => {
  it("is the first that works, or the one that is asked for", () => {
    expect(findBuilder(undefined, () => null).name).toBe("buildah");
    expect(findBuilder(undefined, (name) => (name === "docker" ? null : "is not installed")).name).toBe(
      "docker",
    );
    expect(findBuilder("podman", () => null).name).toBe("podman");
  });

  it("is missing with the reason of each", () => {
    const probe = (name: string): string => (name === "docker" ? "no daemon answers" : "is not installed");
    expect(() => findBuilder(undefined, probe)).toThrow(
      "no image without a builder, one of buildah, podman, docker:\n" +
        "  buildah: is not installed\n  podman: is not installed\n  docker: no daemon answers",
    );
    expect(() => findBuilder("docker", probe)).toThrow("  docker: no daemon answers");
    expect(() => findBuilder("kaniko", probe)).toThrow("BUILDER=kaniko is none of buildah, podman, docker");
  });

  it.each(BUILDERS)("$name builds the Dockerfile and writes an archive", ({ build, save }) => {
    const args = build(TARGET);
    expect(args[0]).toBe("build");
    expect(args.join(" ")).toContain(
      "--file deploy/Dockerfile --tag docker.io/library/conversation-export:0.1.0",
    );
    expect(args.slice(-5)).toEqual(["--build-arg", "VERSION=0.1.0", "--network", "host", "."]);
    expect(save(TARGET).join(" ")).toContain(TARGET.file);
  });
});
