SELECT host, service, count_if(level = 'ERROR') AS errors, _date
FROM lake.raw.machine_logs
GROUP BY host, service, _date
