"""The path is not what it seems: hazards 1 to 9."""

from __future__ import annotations

from tests.hazards.cells import Group, Hazard, each, everywhere, tested
from tests.hazards.places import ELSEWHERE, HERE, ORPHANS, READ, REMOVE, SCAN

_SPELLED = HERE + "slashes_too_many_and_another_scheme_name_the_same_files"
_TWINS = tested(HERE + "two_catalogs_over_one_folder_lock_each_other")
_ENCODED = HERE + "files_under_an_encoded_folder_really_go_and_the_live_one_stays"

PATHS = Group(
    "The path is not what it seems",
    (
        Hazard(
            1,
            "The store has two names (`s3://`, `s3a://`), and live files look like orphans.",
            each(
                tested(ORPHANS + "on_s3_a_file_is_referenced_however_its_store_is_spelled", _SPELLED),
                tested(_SPELLED),
                tested(_SPELLED),
                tested(_SPELLED),
            ),
        ),
        Hazard(
            2,
            "Cleaning `/t` reaches its sibling `/t_2`.",
            everywhere(HERE + "cleaning_a_table_leaves_its_sibling_with_the_same_beginning_alone"),
        ),
        Hazard(
            3,
            "Two tables lie at one location.",
            each(tested(SCAN + "datasets_that_share_a_location_lock_each_other"), _TWINS, _TWINS, _TWINS),
        ),
        Hazard(4, "Slashes at the end, and two in a row.", everywhere(_SPELLED)),
        Hazard(
            5,
            "Log and listing encode a path differently: the live file goes, or nothing does and success is told.",
            everywhere(_ENCODED, ORPHANS + "no_file_that_a_version_reads_is_found"),
        ),
        Hazard(
            6,
            "Files of a table lie outside its location.",
            each(
                tested(READ["iceberg"] + "tables_that_share_or_scatter_their_files_are_not_fully_known"),
                tested(REMOVE["delta"] + "files_outside_the_table_in_its_log_or_not_in_the_plan_are_refused"),
                ELSEWHERE,
                ELSEWHERE,
            ),
        ),
        Hazard(
            7,
            "Rules for hidden paths: partition columns that begin with `_`, and a second format's metadata.",
            everywhere(
                HERE + "a_partition_column_with_an_underscore_hides_nothing",
                HERE + "metadata_of_a_second_format_in_the_table_stays",
            ),
        ),
        Hazard(
            8,
            "A delimiter inside a partition's value.",
            everywhere(
                _ENCODED,
                "tests/conformance/test_histories.py::test_odd_partition_values_have_their_own_ids_and_make_the_date_a_doubt",
            ),
        ),
        Hazard(
            9,
            "Somebody else's files under the table's path.",
            everywhere(ORPHANS + "what_is_never_an_orphan_is_not_found"),
        ),
    ),
)
