"""The set of references is not complete: hazards 10 to 19."""

from __future__ import annotations

from ebbtide.model.capabilities import Capability
from tests.hazards.cells import Cannot, Group, Hazard, each, not_declared, tested
from tests.hazards.places import ELSEWHERE, HERE, HUDI_IS_LOCKED, ORPHANS, READ, REMOVE, RULES, SWEEP

_IN_THE_LOG = Cannot(
    "statistics are part of the log's own entries, and no file of their own",
    '.venv/bin/python -c "import deltalake, os, pyarrow, tempfile; d = tempfile.mkdtemp(); '
    "deltalake.write_deltalake(d, pyarrow.table({'a': [1]})); "
    "print(len(os.listdir(d)), 'stats' in open(d + '/_delta_log/' + '0' * 20 + '.json').read())\"",
    "2 True",
)


def _no_catalog(format_: str) -> Cannot:
    return Cannot(
        "the folder is the table, and nothing but the storage is asked for tables",
        f"grep -c uri src/ebbtide/formats/{format_}/discover.py",
        "0",
    )


REFERENCES = Group(
    "The set of references is not complete",
    (
        Hazard(
            10,
            "Statistics files are overlooked.",
            each(
                tested(
                    READ["iceberg"] + "statistics_of_both_kinds_are_referenced",
                    REMOVE["iceberg"] + "statistics_of_both_kinds_leave_the_metadata_with_their_version",
                ),
                _IN_THE_LOG,
                tested(
                    READ["hudi"] + "the_metadata_table_is_part_of_its_table",
                    REMOVE["hudi"] + "rows_partitions_and_versions_go_and_the_table_keeps_its_indexes_and_settings",
                ),
                tested(REMOVE["paimon"] + "index_manifests_and_statistics_go_with_their_versions"),
            ),
        ),
        Hazard(
            11,
            "Statistics that were replaced stay for ever.",
            each(
                tested(HERE + "statistics_that_were_replaced_go_and_the_newest_stay"),
                _IN_THE_LOG,
                HUDI_IS_LOCKED,
                tested(HERE + "statistics_that_were_replaced_go_and_the_newest_stay"),
            ),
        ),
        Hazard(
            12,
            "Deletion vectors, delete files, log files and change data are overlooked.",
            each(
                tested(READ["iceberg"] + "deletion_vectors_and_delete_files_have_their_roles"),
                tested(
                    REMOVE["delta"] + "deletion_vectors_and_change_data_go_when_they_are_named_and_only_then",
                    READ["delta"] + "a_deletion_vector_under_a_random_prefix_is_found",
                ),
                tested(
                    READ["hudi"] + "change_data_files_are_referenced",
                    READ["hudi"] + "a_log_file_after_a_scheduled_compaction_is_live_and_survives_it",
                ),
                tested(READ["paimon"] + "indexes_beside_data_files_and_of_dynamic_buckets_are_references"),
            ),
        ),
        Hazard(
            13,
            "Branches and tags are overlooked, or an error of reading them empties what is to be kept.",
            each(
                tested(
                    REMOVE["iceberg"] + "a_tag_or_branch_at_a_version_sends_it_back_and_is_not_silently_dropped",
                    ORPHANS + "one_dataset_that_cannot_be_read_keeps_every_orphan",
                ),
                tested(
                    READ["delta"] + "a_damaged_commit_is_an_error_that_names_the_file",
                    READ["delta"] + "a_gap_that_a_checkpoint_bridges_makes_the_references_unknown",
                ),
                tested(
                    SWEEP + "a_tag_reads_back_after_the_sweep",
                    READ["hudi"] + "corrupt_or_missing_metadata_is_an_error_that_names_it",
                ),
                tested(
                    REMOVE["paimon"] + "expiry_after_a_deleted_tag_takes_no_file_that_the_branch_reads",
                    REMOVE["paimon"] + "expiry_passes_a_tag_whose_version_stays",
                    READ["paimon"] + "corrupt_or_missing_metadata_is_one_clear_error_that_names_the_file",
                ),
            ),
        ),
        Hazard(
            14,
            "References that only the catalog knows, as the branches of Nessie.",
            each(
                tested(
                    HERE + "a_catalog_that_keeps_references_of_its_own_is_refused",
                    REMOVE["iceberg"] + "a_table_without_gc_is_refused_in_commit_and_in_free",
                ),
                _no_catalog("delta"),
                _no_catalog("hudi"),
                tested(READ["paimon"] + "a_missing_warehouse_and_another_metastore_are_errors_and_not_empty"),
            ),
        ),
        Hazard(
            15,
            "Changelogs that outlive their snapshot.",
            each(
                Cannot(
                    "changes are computed from snapshots, and no changelog is kept",
                    '.venv/bin/python -c "from pyiceberg.table.metadata import TableMetadataV2 as T; '
                    "print([name for name in T.model_fields if 'change' in name])\"",
                    "[]",
                ),
                tested(
                    READ["delta"] + "the_change_feed_of_the_first_version_left_still_references_what_it_removed",
                    READ["delta"] + "change_data_past_log_cleanup_makes_the_references_unknown",
                ),
                tested(READ["hudi"] + "change_data_files_are_referenced"),
                tested(
                    READ["paimon"] + "changelogs_that_outlive_their_snapshots_are_references",
                    REMOVE["paimon"] + "changelogs_that_are_kept_longer_outlive_expiry",
                ),
            ),
        ),
        Hazard(
            16,
            "Savepoints, which are tags elsewhere.",
            each(
                tested(SWEEP + "a_tag_reads_back_after_the_sweep"),
                not_declared("delta", Capability.TAGS),
                tested(
                    REMOVE["hudi"] + "all_but_the_head_can_go_and_a_savepoint_keeps_its_files",
                    READ["hudi"] + "savepointed_files_stay_referenced_after_a_clean_and_are_gone_after_its_end",
                ),
                tested(SWEEP + "a_tag_reads_back_after_the_sweep"),
            ),
        ),
        Hazard(
            17,
            "Snapshots that are staged, or were cherry-picked.",
            each(
                tested(
                    REMOVE["iceberg"] + "a_staged_version_that_was_published_since_the_plan_is_sent_back",
                    RULES + "staged_snapshots_are_protected_and_protect_what_they_read",
                ),
                not_declared("delta", Capability.STAGING),
                not_declared("hudi", Capability.STAGING),
                not_declared("paimon", Capability.STAGING),
            ),
        ),
        Hazard(
            18,
            "Clones and imported tables that share files with their source.",
            each(
                tested(
                    READ["iceberg"] + "a_file_that_two_tables_reference_is_in_both_readings",
                    RULES + "a_file_of_another_dataset_keeps_its_transaction",
                ),
                tested(
                    READ["delta"] + "a_shallow_clone_references_the_files_and_vectors_of_its_source",
                    REMOVE["delta"] + "the_source_of_a_shallow_clone_cannot_be_reached_from_the_clone",
                ),
                ELSEWHERE,
                ELSEWHERE,
            ),
        ),
        Hazard(
            19,
            "A newer writer uses a feature that this reader does not know.",
            each(
                tested(HERE + "an_iceberg_table_of_a_newer_version_is_an_error_and_never_half_read"),
                tested(READ["delta"] + "a_feature_that_nobody_looked_at_makes_the_references_unknown"),
                tested(HERE + "a_hudi_table_of_a_newer_version_is_an_error_and_never_half_read"),
                tested(READ["paimon"] + "what_a_newer_paimon_wrote_is_not_fully_known"),
            ),
        ),
    ),
)
