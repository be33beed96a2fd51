SELECT area, avg(days) AS days FROM (SELECT * FROM lake.mart.churn) c GROUP BY area
