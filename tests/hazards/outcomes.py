"""Time and races, false success and resurrection: hazards 20 to 30."""

from __future__ import annotations

from tests.hazards.cells import Cannot, Group, Hazard, each, everywhere, tested
from tests.hazards.places import HERE, HUDI_IS_LOCKED, ORPHANS, READ, REMOVE, RULES, STORAGE

_LISTED_FIRST = tested(
    ORPHANS + "a_listing_that_no_scan_followed_is_refused",
    ORPHANS + "a_file_that_was_written_again_is_seen_by_the_last_look",
)
_NOT_REMOVED = tested(
    HERE + "a_file_that_could_not_be_removed_is_an_outcome_and_never_swept",
    "tests/faults/test_disk_and_clock.py::test_files_that_the_store_refuses_are_told_kept_in_mind_and_removed_by_the_next_run",
)
_NOT_REMOVED_ON_S3 = tested(*_NOT_REMOVED.tests, STORAGE + "on_s3_errors_of_single_keys_are_read")
_RACES = ("a_late_file_that_comes_while_its_partition_goes_is_seen_at_the_next_attempt",
          "a_compaction_that_comes_while_its_partition_goes_sends_it_back",
          "a_compaction_that_began_before_its_partition_went_cannot_bring_it_back")  # fmt: skip
_NO_S3 = Cannot(
    "the session has no client of S3, so this format is not read there, and a local disk keeps no versions",
    'grep -c "hadoop-aws" src/ebbtide/spark/jars-spark35.lock',
    "0",
)
_NO_ROLLUP = Cannot(
    "there are no rollups before the hot tier", ".venv/bin/ebbtide rollup", "Error: No such command 'rollup'."
)

TIME = Group(
    "Time and races",
    (
        Hazard(
            20,
            "A writer's files that are not committed yet.",
            everywhere(HERE + "a_file_that_a_writer_may_still_commit_stays")
            | {"hudi": tested(REMOVE["hudi"] + "an_instant_in_flight_stops_drops_and_is_not_rolled_back")},
        ),
        Hazard(
            21,
            "References were read before the storage was listed.",
            each(
                _LISTED_FIRST,
                tested(ORPHANS + "a_file_that_is_committed_after_the_listing_is_no_orphan", *_LISTED_FIRST.tests),
                HUDI_IS_LOCKED,
                _LISTED_FIRST,
            ),
        ),
        Hazard(
            22,
            "The wrong time of a file, or none.",
            everywhere(
                HERE + "a_file_without_a_time_stays", "tests/plan/test_orphans.py::test_a_file_without_a_time_is_kept"
            ),
        ),
        Hazard(
            23,
            "An `older_than` that lies in the future.",
            everywhere(
                "tests/config/test_policies.py::test_what_is_wrong_is_named_with_file_line_and_hint",
                "tests/scenarios/foundry/test_worked_example.py::test_a_writing_verb_refuses_another_clock",
            ),
        ),
        Hazard(
            24,
            "Time zones of session, machine and partition.",
            everywhere(
                HERE + "days_are_those_of_utc_whatever_the_zone_of_machine_and_session",
                "tests/conformance/test_reading.py::test_commit_times_are_utc_and_in_order",
            ),
        ),
        Hazard(
            25,
            "Files that a reader inside the window still needs.",
            everywhere(
                HERE + "a_version_inside_the_window_stays_readable",
                RULES + "a_version_is_as_old_as_its_supersession",
            ),
        ),
        Hazard(
            26,
            "A commit whose outcome is unknown, and then its files are cleaned up.",
            everywhere(HERE + "a_commit_whose_answer_was_lost_removes_no_file_and_is_finished_later"),
        ),
    ),
)


SUCCESS = Group(
    "False success and resurrection",
    (
        Hazard(
            27,
            "A file could not be removed, and only the log says so.",
            # Hudi and Paimon are not read on S3 (hazard 29).
            each(_NOT_REMOVED_ON_S3, _NOT_REMOVED_ON_S3, _NOT_REMOVED, _NOT_REMOVED),
        ),
        Hazard(
            28,
            "Compaction and deletes at the same time bring rows back.",
            each(
                tested(
                    *(REMOVE["iceberg"] + race for race in _RACES),
                    READ["iceberg"] + "a_compaction_takes_the_removed_rows_of_delete_files_along",
                ),
                tested(*(REMOVE["delta"] + race for race in _RACES)),
                tested(
                    REMOVE["hudi"] + "a_partition_that_grew_until_the_commit_is_not_replaced_and_takes_writes",
                    REMOVE["hudi"] + "an_instant_in_flight_stops_drops_and_is_not_rolled_back",
                ),
                tested(REMOVE["paimon"] + "a_partition_that_was_rewritten_since_is_sent_back"),
            ),
        ),
        Hazard(
            29,
            "A removal that only hides: a delete marker, or success for a key that the answer leaves out.",
            each(
                tested(
                    STORAGE + "on_s3_a_delete_marker_is_no_removal",
                    STORAGE + "on_s3_a_key_that_the_answer_leaves_out_is_not_gone",
                ),
                tested(
                    STORAGE + "on_s3_a_delete_marker_is_no_removal",
                    STORAGE + "on_s3_a_key_that_the_answer_leaves_out_is_not_gone",
                ),
                _NO_S3,
                _NO_S3,
            ),
        ),
        Hazard(
            30,
            "A rollup is refreshed after its raw data was dropped.",
            each(_NO_ROLLUP, _NO_ROLLUP, _NO_ROLLUP, _NO_ROLLUP),
        ),
    ),
)
