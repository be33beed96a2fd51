-- do: `ebbtide contract repair TABLE`; where the contract is what is wrong, correct it in tables/*.yml
-- A table that has a contract must be as it says; `ebbtide contract repair` brings it back.
SELECT table_id, aspect, found, wanted
FROM contract_drift
ORDER BY table_id, aspect, wanted
