-- Compaction has kept its keys in job_keys since the version before, and compares nothing any more.
{{drop compaction_keys}};
{{drop compaction_checks}};
