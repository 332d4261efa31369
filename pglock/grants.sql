-- What a program that uses the store needs, and nothing more. @ stands for the
-- schema's name, ROLE for the role that the program logs in as.
GRANT USAGE ON SCHEMA @ TO ROLE;
GRANT SELECT, UPDATE ON @.meta TO ROLE;
GRANT SELECT, INSERT, UPDATE, DELETE ON @.names, @.claims, @.records, @.events, @.once TO ROLE;
GRANT SELECT ON @.rows, @.held, @.waiting TO ROLE;
GRANT SELECT, INSERT, UPDATE ON @.fences TO ROLE;
GRANT USAGE ON SEQUENCE @.tokens TO ROLE;
GRANT USAGE ON SEQUENCE @.versions TO ROLE;
