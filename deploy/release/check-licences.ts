import { readBillOfMaterials } from "./bill-of-materials.ts";
import { licenceProblems } from "./licences.ts";

const problems = licenceProblems(readBillOfMaterials());
for (const problem of problems) console.error(`licence of ${problem}`);
if (problems.length > 0) process.exitCode = 1;
