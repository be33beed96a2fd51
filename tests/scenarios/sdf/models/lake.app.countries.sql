SELECT code, name, region FROM lake.raw.country_codes
