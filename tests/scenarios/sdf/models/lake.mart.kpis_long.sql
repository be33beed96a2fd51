SELECT k.kpi, k.value, v.unit
FROM lake.mart.kpis k
JOIN (VALUES ('paid', 'EUR'), ('users', '1')) AS v(kpi, unit) ON v.kpi = k.kpi
