-- The view `tables`: with why nothing of a table may go.
CREATE TEMP TABLE tables_view AS
SELECT t.* EXCLUDE (former, scan_id), f.blocks AS blocked FROM in_tables t JOIN facts f USING (table_id) WHERE NOT f.former;
