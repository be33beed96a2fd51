SELECT host FROM lake.raw.machine_logs
UNION
SELECT host FROM lake.app.log_errors
