-- Two paths are the same file also when they only differ in percent-encoding, however often they were encoded (hazard 5):
-- that keeps more, never less.
CREATE TEMP MACRO loosely(path) AS regexp_replace(path, '(?:%(?:25)*[0-9A-Fa-f]{2}|[^A-Za-z0-9/._-])+', '?', 'g');
