"""What was found here: hazards 31 to 38."""

from __future__ import annotations

from tests.hazards.cells import Hazard, each, everywhere, tested
from tests.hazards.places import (
    DATES,
    HISTORIES,
    IDENTITY,
    LEAVING,
    LINKED,
    MOVED,
    NAMES,
    READ,
    STORAGE,
    UNREAD,
    UNREAD_PLAN,
    VOUCHED,
)

_IDENTITY = IDENTITY + "a_table_keeps_its_identity_and_one_that_is_made_anew_has_another"
_NAMED = tested(NAMES, _IDENTITY)
_WITH_FOLDER = tested(IDENTITY + "a_table_whose_folder_is_moved_has_its_files_where_they_lie_now")
_BY_HANDLE = tested(
    LINKED,
    STORAGE + "a_folder_that_became_a_link_after_it_was_listed_is_not_followed",
    STORAGE + "links_above_a_dataset_are_those_from_when_the_sweep_began",
)

HAZARDS = (
    Hazard(
        31,
        "A name is text before it is a name: variables, patterns and escapes turn one table into another.",
        each(_NAMED, _NAMED, _NAMED, tested(_IDENTITY)),
    ),
    Hazard(
        32,
        "An age that is guessed: NULL in the date column, and another column's digits taken for the date.",
        everywhere(
            DATES + "a_null_date_is_not_due_whatever_else_stands_in_the_path",
            DATES + "several_texts_that_could_be_the_date_are_none",
            DATES + "one_text_is_a_guess_and_only_while_every_value_of_it_is_a_date",
        ),
    ),
    Hazard(
        33,
        "Who cannot be read right now loses what it borrowed from others.",
        each(tested(UNREAD, UNREAD_PLAN), tested(UNREAD), tested(UNREAD_PLAN), tested(UNREAD)),
    ),
    Hazard(
        34,
        "The table that moved: files in the old place are nobody's, and called gone.",
        each(
            tested(
                MOVED + "what_a_moved_table_left_in_its_old_folder_goes_with_its_versions",
                MOVED + "a_version_whose_file_lies_outside_waits_and_says_so",
                MOVED + "a_folder_that_another_table_has_now_is_nobodys_old_one",
            ),
            _WITH_FOLDER,
            _WITH_FOLDER,
            _WITH_FOLDER,
        ),
    ),
    Hazard(
        35,
        "The file that comes back while its first transaction is on its way out.",
        each(
            tested(
                MOVED + "a_transaction_whose_file_came_back_is_not_called_deleted",
                READ["iceberg"] + "a_file_under_two_spellings_is_one_file_that_both_versions_need",
            ),
            tested(READ["delta"] + "a_restored_file_keeps_the_transaction_that_first_added_it"),
            tested(HISTORIES + "a_rollback_keeps_what_was_rolled_back_known"),
            tested(HISTORIES + "a_rollback_keeps_what_was_rolled_back_known"),
        ),
    ),
    Hazard(
        36,
        "A limit that measures the wrong thing: bytes that are freed instead of rows that leave.",
        everywhere(
            LEAVING + "a_branch_that_keeps_the_files_does_not_lift_the_limit",
            LEAVING + "a_sweep_is_limited_by_what_leaves_and_explain_names_who_keeps_it",
        ),
    ),
    Hazard(
        37,
        "A folder that becomes a link between listing and removal.",
        each(_BY_HANDLE, _BY_HANDLE, tested(LINKED), tested(LINKED)),
    ),
    Hazard(
        38,
        "A signature over what somebody else wrote: the signer trusts the table that it signs.",
        everywhere(
            VOUCHED + "rows_at_the_end_that_nobody_appended_are_refused_by_index",
            VOUCHED + "a_ledger_that_was_replaced_whole_under_another_key_is_found_and_signed_by_nobody",
            VOUCHED + "two_hosts_on_one_postgresql_append_at_once_and_sign_each_others_entries",
        ),
    ),
)
