-- A batch of ingest becomes one file instead of some fifty, whose creation was a seventh of the cost of the INSERT. Only
-- what merges have made larger has a file for each column.
ALTER TABLE {{local conversations}} {{on cluster}} MODIFY SETTING min_bytes_for_wide_part = 67108864;
ALTER TABLE {{local conversation_updates}} {{on cluster}} MODIFY SETTING min_bytes_for_wide_part = 67108864;
