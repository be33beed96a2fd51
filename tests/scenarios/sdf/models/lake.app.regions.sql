SELECT DISTINCT region FROM lake.app.countries
