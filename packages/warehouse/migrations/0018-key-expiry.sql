-- When a key stops to work; 1970: never.
{{alter api_keys ADD COLUMN IF NOT EXISTS expires_at DateTime64(3, 'UTC')}};
