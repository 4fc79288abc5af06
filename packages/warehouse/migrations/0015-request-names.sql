-- How many addresses and ids a request was made with, which is counted for each client and day. A finished request has lost them.
{{alter data_subject_requests ADD COLUMN IF NOT EXISTS named UInt16}};
