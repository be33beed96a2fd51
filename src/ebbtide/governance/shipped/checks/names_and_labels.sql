-- do: `ebbtide labels`; correct the name where it is written, or map it under `lineage: names:` in ebbtide.yml
-- Names, labels and files of lineage that could not be read or that match nothing: a gap that labels do not cross.
SELECT kind, place, subject, message, hint
FROM problems
WHERE kind NOT IN ('fallback', 'cycle')
ORDER BY place, subject, message
