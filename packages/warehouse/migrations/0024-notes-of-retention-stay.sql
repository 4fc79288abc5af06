-- Readers of changes are told of deleted end users from these notes, however long the deletion takes.
ALTER TABLE {{local job_keys}} {{on cluster}}
  MODIFY TTL added_at + toIntervalDay(if(startsWith(run_id, 'retention-'), 90, 3));
