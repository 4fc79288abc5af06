-- By itself, because a second exchange would undo the first. Even then no event would be lost: the next migration moves
-- all of them to the table that is called landing.
EXCHANGE TABLES {{local landing}} AND {{local landing_by_record}} {{on cluster}};
