"""Where the tests of hazards are, and two cells that several groups share."""

from __future__ import annotations

from tests.hazards.cells import FORMATS, Cannot, tested

HERE = "tests/conformance/test_hazards.py::test_"
SWEEP = "tests/conformance/test_sweep.py::test_"
ORPHANS = "tests/inventory/test_orphans.py::test_"
SCAN = "tests/inventory/test_scan.py::test_"
STORAGE = "tests/storage/test_remove.py::test_"
RULES = "tests/plan/test_rules.py::test_"
LEAVING = "tests/plan/test_leaving.py::test_"
MOVED = "tests/sweep/test_moved.py::test_"
DATES = "tests/conformance/test_partition_dates.py::test_"
HISTORIES = "tests/conformance/test_histories.py::test_"
IDENTITY = "tests/conformance/test_identity.py::test_"
NAMES = "tests/sweep/test_names.py::test_a_variable_in_a_name_leads_to_no_other_table"
UNREAD = "tests/sweep/test_unread.py::test_files_of_all_others_wait_for_who_cannot_be_read"
UNREAD_PLAN = "tests/plan/test_unread.py::test_only_metadata_goes_on_and_not_where_one_operation_does_both"
LINKED = "tests/faults/test_disk_and_clock.py::test_a_folder_that_becomes_a_link_during_a_sweep_loses_nothing_behind_it"
VOUCHED = "tests/ledger/test_vouched.py::test_"
READ = {name: f"tests/formats/test_{name}_read.py::test_" for name in ("iceberg", "delta", "hudi", "paimon")}
REMOVE = {name: f"tests/formats/test_{name}_remove.py::test_" for name in ("iceberg", "delta", "hudi", "paimon")}

ELSEWHERE = tested(HERE + "a_table_that_says_its_files_lie_elsewhere_is_not_fully_known")
HUDI_IS_LOCKED = Cannot(
    "no file under a Hudi table is ever a candidate of a listing: only Hudi's own cleaner removes there",
    ".venv/bin/python -c \"print('hudi' in open('src/ebbtide/inventory/sql/candidates/020_candidates.sql').read())\"",
    "False",
)

_LISTED = ("iceberg", "delta", "paimon")
_ON_S3 = ("iceberg", "delta")
_BY_PATH = _ON_S3  # those whose files Ebbtide removes by their paths
STANDS_FOR = {
    # What runs before any format is asked, or on the plan's tables alone.
    "tests/config/test_policies.py::test_what_is_wrong_is_named_with_file_line_and_hint": FORMATS,
    "tests/scenarios/foundry/test_worked_example.py::test_a_writing_verb_refuses_another_clock": FORMATS,
    "tests/plan/test_orphans.py::test_a_file_without_a_time_is_kept": FORMATS,
    RULES + "a_version_is_as_old_as_its_supersession": FORMATS,
    RULES + "a_file_of_another_dataset_keeps_its_transaction": FORMATS,
    RULES + "staged_snapshots_are_protected_and_protect_what_they_read": FORMATS,
    "tests/faults/test_disk_and_clock.py::test_files_that_the_store_refuses_are_told_kept_in_mind_and_removed_by_the_next_run": FORMATS,  # noqa: E501
    LINKED: FORMATS,
    STORAGE + "a_folder_that_became_a_link_after_it_was_listed_is_not_followed": _BY_PATH,
    STORAGE + "links_above_a_dataset_are_those_from_when_the_sweep_began": _BY_PATH,
    LEAVING + "a_branch_that_keeps_the_files_does_not_lift_the_limit": FORMATS,
    LEAVING + "a_sweep_is_limited_by_what_leaves_and_explain_names_who_keeps_it": FORMATS,
    # The ledger knows no formats.
    VOUCHED + "rows_at_the_end_that_nobody_appended_are_refused_by_index": FORMATS,
    VOUCHED + "a_ledger_that_was_replaced_whole_under_another_key_is_found_and_signed_by_nobody": FORMATS,
    VOUCHED + "two_hosts_on_one_postgresql_append_at_once_and_sign_each_others_entries": FORMATS,
    NAMES: ("iceberg", "delta", "hudi"),
    UNREAD: ("iceberg", "delta", "paimon"),
    UNREAD_PLAN: ("iceberg", "hudi"),
    MOVED + "what_a_moved_table_left_in_its_old_folder_goes_with_its_versions": ("iceberg",),
    MOVED + "a_version_whose_file_lies_outside_waits_and_says_so": ("iceberg",),
    MOVED + "a_folder_that_another_table_has_now_is_nobodys_old_one": ("iceberg",),
    MOVED + "a_transaction_whose_file_came_back_is_not_called_deleted": ("iceberg",),
    # One lake of all formats; files under a Hudi table are never looked at.
    ORPHANS + "a_listing_that_no_scan_followed_is_refused": _LISTED,
    ORPHANS + "a_file_that_was_written_again_is_seen_by_the_last_look": _LISTED,
    ORPHANS + "one_dataset_that_cannot_be_read_keeps_every_orphan": _LISTED,
    ORPHANS + "a_file_that_is_committed_after_the_listing_is_no_orphan": ("delta",),
    ORPHANS + "on_s3_a_file_is_referenced_however_its_store_is_spelled": ("iceberg",),
    STORAGE + "on_s3_errors_of_single_keys_are_read": _ON_S3,
    STORAGE + "on_s3_a_delete_marker_is_no_removal": _ON_S3,
    STORAGE + "on_s3_a_key_that_the_answer_leaves_out_is_not_gone": _ON_S3,
    SCAN + "datasets_that_share_a_location_lock_each_other": ("iceberg",),
    HERE + "a_catalog_that_keeps_references_of_its_own_is_refused": ("iceberg",),
    HERE + "an_iceberg_table_of_a_newer_version_is_an_error_and_never_half_read": ("iceberg",),
    HERE + "a_hudi_table_of_a_newer_version_is_an_error_and_never_half_read": ("hudi",),
}
"""The formats that a test without a format among its parameters stands for. Those in a format's own file are its."""
