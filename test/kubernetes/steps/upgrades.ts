import { randomBytes } from "node:crypto";
import { runSql } from "../../system/warehouse-sql.ts";
import { nameOf, type Release, SERVICES } from "../release.ts";
import { expectSays, refusalOf, type Trial } from "../trial.ts";
import { CREDENTIALS } from "./install.ts";

const podNames = async (release: Release): Promise<string[]> =>
  (await Promise.all(SERVICES.map((service) => release.pods(service))))
    .flat()
    .map(({ metadata }) => metadata.name)
    .sort();

const failingUpgrade = async (
  { release }: Trial,
  set: Readonly<Record<string, string>>,
  ...options: string[]
): Promise<string> => {
  const before = await podNames(release);
  const said = await refusalOf("the upgrade", release.upgrade(set, ...options));
  await release.ready();
  const after = await podNames(release);
  if (before.join() !== after.join())
    throw new Error(`pods were replaced: ${before.join()} by ${after.join()}`);
  return said;
};

const migrationLog = ({ release }: Trial): Promise<string> => release.guide(3);

export const tryUpgrades = async (trial: Trial): Promise<void> => {
  const { release, steps, servers, cluster } = trial;
  const { step } = steps;
  await step("upgrade with changed values", {}, async () => {
    const before = await podNames(release);
    await release.upgrade({ "config.LOG_LEVEL": '"debug"', "ingest.config.BATCH_MAX_AGE_MS": '"700"' });
    await release.ready();
    const kept = (await podNames(release)).filter((name) => before.includes(name));
    if (kept.length > 0) throw new Error(`pods with old values: ${kept.join(", ")}`);
    return `${before.length} pods replaced`;
  });
  await step("rollback", {}, async () => {
    await release.helm("rollback", "export", "1", "--wait", "--timeout=5m");
    await release.ready();
    return "to the first revision";
  });
  await step("migration with a wrong password", {}, async () => {
    await failingUpgrade(trial, {
      "clickhouse.users.migrator.existingSecret.key": '"wrong"',
      "migrations.backoffLimit": "0",
    });
    const log = await migrationLog(trial);
    expectSays(log, "export-ops: ");
    return log.trim().split("\n").at(-1) ?? "";
  });
  await step("migration that runs into its deadline", {}, async () => {
    const url = servers.stack.clickhouse.url("migrator");
    const holder = `pid 1 on trial since ${new Date().toISOString()}, lease 600 s, trial`;
    await runSql(url, `CREATE TABLE schema_lock (owner String) ENGINE = Memory COMMENT '${holder}'`);
    try {
      // The pod has a tenth of it before the Job deletes it.
      await failingUpgrade(trial, { "migrations.activeDeadlineSeconds": "100" });
    } finally {
      await runSql(url, "DROP TABLE schema_lock");
    }
    const log = await migrationLog(trial);
    expectSays(log, "waiting for its lock", "ended by SIGTERM");
    return "its log stays";
  });
  await step("upgrade to an image that is not there", {}, async () => {
    const said = await failingUpgrade(trial, { "image.tag": '"9.9.9"' }, "--timeout=40s");
    expectSays(said, "pre-upgrade hooks failed");
    return "no pod replaced";
  });
  await step("upgrade with a wrong password of export-api, rolled back", {}, async () => {
    await failingUpgrade(
      trial,
      { "clickhouse.users.reader.existingSecret.key": '"wrong"' },
      "--timeout=60s",
      "--rollback-on-failure",
    );
    return "the old pods served";
  });
  await step("cursor secret changed in three steps", {}, async () => {
    const next = randomBytes(32).toString("hex");
    const read = `get secret ${CREDENTIALS} --namespace ${release.namespace}`.split(" ");
    const { data } = JSON.parse(await cluster.kubectl([...read, "--output=json"])) as {
      data: Readonly<Record<string, string>>;
    };
    const old = Buffer.from(data["cursor-secret"] ?? "", "base64").toString();
    const previous = { "cursorSecretPrevious.existingSecret.name": JSON.stringify(CREDENTIALS) };
    const roll = async (secrets: Readonly<Record<string, string>>, set: Readonly<Record<string, string>>) => {
      const patch = JSON.stringify({ stringData: secrets });
      await cluster.kubectl([
        "patch",
        "secret",
        CREDENTIALS,
        "--namespace",
        release.namespace,
        "--patch",
        patch,
      ]);
      await release.upgrade(set);
      const deployment = `deployment/${nameOf("export-api")}`;
      await cluster.kubectl(["rollout", "restart", deployment, "--namespace", release.namespace]);
      await release.ready();
    };
    await roll({ "cursor-secret-previous": next }, previous);
    await roll({ "cursor-secret": next, "cursor-secret-previous": old }, previous);
    await roll({}, {});
    return "no link was refused";
  });
};
