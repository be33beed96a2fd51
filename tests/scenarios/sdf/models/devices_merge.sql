MERGE INTO lake.app.devices_current t
USING lake.raw.devices s ON t.device_id = s.device_id
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
