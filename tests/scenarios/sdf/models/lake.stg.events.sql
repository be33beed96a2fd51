CREATE OR REPLACE VIEW lake.stg.events AS
SELECT * FROM lake.raw.daily_user_events
