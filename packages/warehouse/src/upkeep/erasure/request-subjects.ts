import { namesOf, subjectOf } from "@conversation-export/domain";
import type { DataSubjectRequest } from "../../access/request-rows.ts";
import type { ErasureSubject } from "./erasure-keys.ts";

export type DueRequest = Pick<DataSubjectRequest, "clientId" | "requestId" | "subject" | "receivedAt">;

export const subjectsOfRequest = (request: DueRequest): ErasureSubject[] => {
  const { clientId, requestId, subject, receivedAt } = request;
  return namesOf(subject).map(({ type, value }) => ({
    clientId,
    requestId,
    createdBefore: receivedAt * 1000,
    subject: subjectOf(type, value),
  }));
};
