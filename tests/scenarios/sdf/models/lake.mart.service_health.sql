SELECT service, percentile(errors, 0.99) AS p99, collect_list(struct(host, errors)) AS worst
FROM lake.app.log_errors
GROUP BY service
