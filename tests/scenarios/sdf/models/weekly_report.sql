CREATE OR REPLACE VIEW lake.mart.weekly_report AS
SELECT k.kpi, k.value, h.service, h.p99
FROM lake.mart.kpis_long AS k
FULL JOIN lake.mart.service_health AS h ON 1 = 1
