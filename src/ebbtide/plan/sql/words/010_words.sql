-- The words that all steps share: lists of texts, calendar-true arithmetic in UTC, and the verdict on one object.
-- Instants are microseconds since 1970, so that no session's time zone is ever asked (hazard 24).

-- A list of texts, sorted, each once; NULL is none.
CREATE TEMP MACRO joined(list) AS coalesce(list_sort(list_distinct(list)), []::VARCHAR[]);
CREATE TEMP MACRO texts(list) AS coalesce(list, []::VARCHAR[]);
CREATE TEMP MACRO only_if(condition, list) AS CASE WHEN condition THEN list ELSE []::VARCHAR[] END;

-- `add` for an instant: its calendar part, clamped to the month's last day, and its part of fixed length (spec §3).
CREATE TEMP MACRO moved(instant, months, micros) AS
    CASE WHEN months = 0 THEN instant
         ELSE epoch_us((make_timestamp(instant)::DATE + to_months(months))::TIMESTAMP)
              + ((instant % 86400000000) + 86400000000) % 86400000000
    END + micros;
CREATE TEMP MACRO is_older(instant, months, micros, now_us) AS coalesce(moved(instant, months, micros) < now_us, false);

-- The same for days.
CREATE TEMP MACRO moved_day(day, months, days) AS
    CASE WHEN months = 0 THEN day + days ELSE (day + to_months(months))::DATE END;
CREATE TEMP MACRO day_is_older(day, months, days, today) AS coalesce(moved_day(day, months, days) < today, false);

-- Durations that are texts of a table: `+7d`, `1m`. NULL where it is none.
CREATE TEMP MACRO count_of(duration) AS
    try_cast(nullif(regexp_extract(duration, '^([+-]?[0-9]{1,6})([dwmy])$', 1), '') AS INTEGER);
CREATE TEMP MACRO unit_of(duration) AS regexp_extract(duration, '^([+-]?[0-9]{1,6})([dwmy])$', 2);
CREATE TEMP MACRO longest_days(duration) AS
    CASE unit_of(duration)
        WHEN 'd' THEN count_of(duration)
        WHEN 'w' THEN count_of(duration) * 7
        WHEN 'm' THEN count_of(duration) * 31
        WHEN 'y' THEN count_of(duration) * 366
    END;
-- No more months than the calendar has: an engine's instants would overflow.
CREATE TEMP MACRO whole_months(months) AS greatest(-120000, least(120000, months));
CREATE TEMP MACRO add_duration(day, duration, sign) AS
    CASE unit_of(duration)
        WHEN 'd' THEN day + sign * count_of(duration)
        WHEN 'w' THEN day + sign * 7 * count_of(duration)
        WHEN 'm' THEN (day + to_months(whole_months(sign * count_of(duration))))::DATE
        WHEN 'y' THEN (day + to_months(whole_months(sign * 12 * count_of(duration))))::DATE
    END;

-- The days that a partition covers (spec §3, "Partitions' dates and time grain"). Trailing: its date is the last of them;
-- leading: the first. Ad hoc tables count as daily. A grain or schedule that cannot be read leaves no date: never due.
CREATE TEMP MACRO is_trailing(grain, schedule, covers) AS
    coalesce(covers = 'trailing', longest_days(grain) > longest_days(coalesce(schedule, '1d')), false);
CREATE TEMP MACRO is_readable(grain, schedule) AS
    longest_days(grain) IS NOT NULL AND longest_days(coalesce(schedule, '1d')) IS NOT NULL;
CREATE TEMP MACRO first_covered(first, grain, schedule, covers) AS
    CASE WHEN grain IS NULL THEN first
         WHEN is_readable(grain, schedule)
         THEN CASE WHEN is_trailing(grain, schedule, covers) THEN least(first, add_duration(first, grain, -1))
                   ELSE first END
    END;
CREATE TEMP MACRO last_covered(first, last, grain, schedule, covers) AS
    CASE WHEN grain IS NULL THEN last
         WHEN is_readable(grain, schedule)
         THEN CASE WHEN is_trailing(grain, schedule, covers) THEN last
                   ELSE greatest(last, add_duration(first, grain, 1) - 1) END
    END;

CREATE TEMP MACRO instant_text(instant) AS strftime(make_timestamp(instant), '%Y-%m-%dT%H:%M:%SZ');
-- A number of at most nine digits; anything else is unknown.
CREATE TEMP MACRO whole(text) AS CASE WHEN regexp_full_match(text, '[0-9]{1,9}') THEN text::INTEGER END;

-- Why: a code that others may rely on, and a text for people (docs/reasons.md). Without a text there is none.
CREATE TEMP MACRO said(code, text) AS CASE WHEN text IS NOT NULL THEN {'code': code, 'text': text} END;

-- Why a mark no longer holds (spec §1, "Mark and sweep"); NULL while it does.
CREATE TEMP MACRO back_of(mark, owner_name, kept, fingerprint, due, age) AS
    CASE WHEN mark IS NULL THEN NULL
         WHEN owner_name IS NULL THEN said('unselected', 'no policy selects it any more')
         WHEN owner_name <> mark.policy THEN said('other_policy', 'policy ' || owner_name || ' owns it now')
         WHEN len(kept) > 0 THEN said('protected', 'protected by ' || array_to_string(kept, ', '))
         WHEN mark.fingerprint <> fingerprint THEN said('changed', 'it changed since it was marked')
         WHEN NOT due THEN age
    END;

-- Highest first: a hold, a person's unmark, then what the mark says, then protection and age. A block (unknown
-- references, a lock) keeps what is not marked, and lets what is marked wait: no mark is lost by an error of one scan.
CREATE TEMP MACRO decision_of(held, pin, back, blocks, mark, kept, due, now_us) AS
    CASE WHEN len(held) > 0 THEN 'held'
         WHEN pin IS NOT NULL THEN 'unmarked'
         WHEN back IS NOT NULL AND len(blocks) = 0 THEN 'unmarked'
         WHEN mark IS NOT NULL AND (len(blocks) > 0 OR mark.grace_us >= now_us) THEN 'marked'
         WHEN mark IS NOT NULL THEN 'ready'
         WHEN len(kept) = 0 AND len(blocks) = 0 AND due THEN 'mark'
         ELSE 'keep'
    END;
CREATE TEMP MACRO because_of(decision, held, pin, back, due, age) AS
    CASE WHEN decision = 'held' THEN said('hold', array_to_string(held, ', '))
         WHEN pin IS NOT NULL THEN said('rescued', pin)
         WHEN decision = 'unmarked' THEN said(back.code, 'unmarked: ' || back.text)
         WHEN due AND decision = 'keep' THEN said('protected', age.text || ', but protected')
         ELSE age
    END;
CREATE TEMP MACRO waits_of(decision, mark, blocks, now_us) AS
    CASE WHEN decision = 'marked'
         THEN joined(list_concat(only_if(coalesce(mark.grace_us >= now_us, false),
                                         ['grace until ' || instant_text(mark.grace_us)]), blocks))
         ELSE []::VARCHAR[]
    END;
CREATE TEMP MACRO is_going(decision) AS decision IN ('mark', 'marked', 'ready');

-- What a mark saw, bound to the table that it saw it in: a policy's words and the number of a version are the same in
-- another one that took the name since. A mark from before identities were known has what it saw alone.
CREATE TEMP MACRO of_this_table(seen, identity, mark) AS
    CASE WHEN identity = '' OR coalesce(mark.fingerprint = seen, false) THEN seen
         ELSE sha256(concat_ws('|', seen, identity)) END;
