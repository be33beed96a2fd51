SELECT DISTINCT e.uid, d.model, d.os, sha2(e.device_id, 256) AS device_hash
FROM lake.stg.events e
INNER JOIN lake.raw.devices d USING (device_id)
