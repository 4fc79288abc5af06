-- Landing begins anew in another order. Its events are a copy of the bus for some days: moving them would take hours where
-- there are many, while ingest inserts into both tables and an erasure reaches only one.
{{drop landing}};
