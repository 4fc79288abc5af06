INSERT INTO {{reached landing}} SELECT * FROM {{reached landing_by_record}};

{{drop landing_by_record}};
