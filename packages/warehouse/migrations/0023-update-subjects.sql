-- Whom an entry of the update index is about: an erasure need not read its text. Rows from before give the answer from
-- their text until ClickHouse has merged them.
{{alter conversation_updates ADD COLUMN IF NOT EXISTS chatter_id String DEFAULT JSONExtractString(concat(head, '[]', tail), 'chatter_id') AFTER uploaded_at}};
{{alter conversation_updates ADD COLUMN IF NOT EXISTS end_user_id String DEFAULT JSONExtractString(concat(head, '[]', tail), 'end_user_id') AFTER chatter_id}};
