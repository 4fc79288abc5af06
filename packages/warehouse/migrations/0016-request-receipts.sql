-- What was deleted for a completed request: rows by table, as JSON. Nothing in it names anybody.
{{alter data_subject_requests ADD COLUMN IF NOT EXISTS receipt String}};
