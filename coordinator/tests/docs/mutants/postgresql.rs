//! Lines of the schema on PostgreSQL.

use ringfence_conformance::store;
use ringfence_coordinator::shard::postgres::Tables;

use super::{Mutant, assert_needed, property};
use crate::{
    docs::{held_up, pooled},
    postgres_fixture::Postgres,
};

const MUTANTS: [Mutant<Postgres>; 21] = [
    (
        "IF {schema}.present_life_1() IS DISTINCT FROM its_life THEN",
        "IF false THEN",
        property!(store::in_another_life_nothing_is_committed),
    ),
    (
        "is_alive := coalesce({schema}.present_life_1() = its_life, false);\n  head_is_stale",
        "is_alive := true;\n  head_is_stale",
        property!(store::in_another_life_nothing_is_read),
    ),
    (
        "is_alive := coalesce({schema}.present_life_1() = its_life, false);\nEND",
        "is_alive := true;\nEND",
        property!(store::in_another_life_nothing_is_read),
    ),
    (
        "IF NOT FOUND THEN",
        "IF false THEN",
        property!(store::a_session_that_another_one_ended_commits_nothing),
    ),
    (
        "DELETE FROM {schema}.gates WHERE id = former;",
        "PERFORM 1;",
        property!(store::a_session_that_another_one_ended_commits_nothing),
    ),
    (
        "WHERE g.id = gate FOR KEY SHARE",
        "WHERE g.id = gate",
        property!(held_up::a_commit_on_its_way_is_over_before_its_session_is_ended),
    ),
    (
        "PERFORM pg_advisory_xact_lock_shared(hashtextextended('{schema}', 0));",
        "PERFORM 1;",
        property!(held_up::a_change_of_the_head_waits_for_commits_that_depend_on_it),
    ),
    (
        "PERFORM pg_advisory_xact_lock(hashtextextended('{schema}', 0));",
        "PERFORM 1;",
        property!(held_up::a_change_of_the_head_waits_for_commits_that_depend_on_it),
    ),
    (
        "ORDER BY d.name FOR UPDATE;",
        "ORDER BY d.name;",
        property!(held_up::a_change_of_a_document_waits_for_commits_that_check_it),
    ),
    (
        "FOR UPDATE;\n    stale := ",
        "FOR UPDATE;\n    PERFORM ",
        property!(held_up::a_commit_behind_a_change_of_what_it_checks_is_refused),
    ),
    (
        "WHERE d.version IS DISTINCT FROM e.version);",
        "WHERE false);",
        property!(store::a_commit_is_refused_whole_if_a_document_is_not_as_expected),
    ),
    (
        "OR at_ms NOT BETWEEN not_before_ms AND not_after_ms THEN",
        "OR at_ms < not_before_ms THEN",
        property!(store::a_commit_that_comes_too_late_does_nothing),
    ),
    (
        "OR at_ms NOT BETWEEN not_before_ms AND not_after_ms THEN",
        "OR at_ms > not_after_ms THEN",
        property!(store::a_commit_under_a_clock_that_went_back_does_nothing),
    ),
    (
        "AND (w.is_any OR d.version = w.version);",
        ";",
        property!(store::of_commits_at_once_that_make_one_document_one_is_done),
    ),
    (
        "IF updated + inserted < cardinality(written) OR",
        "IF",
        property!(store::of_commits_at_once_that_make_one_document_one_is_done),
    ),
    (
        "FROM {schema}.tokens t FOR UPDATE;",
        "FROM {schema}.tokens t;",
        property!(store::no_two_draws_take_one_token),
    ),
    (
        "IF NOT is_alive OR head_is_stale OR tokens = 0 THEN",
        "IF NOT is_alive OR tokens = 0 THEN",
        property!(store::a_draw_by_another_head_takes_nothing),
    ),
    (
        "IF (last_token & 34359738367) + drawn > {counter_max} THEN",
        "IF false THEN",
        property!(store::a_draw_beyond_the_last_counter_takes_nothing),
    ),
    (
        "SET last = at_least WHERE t.last < at_least;",
        "SET last = at_least;",
        property!(store::a_commit_raises_the_last_token_and_lowers_it_only_if_told),
    ),
    (
        "THEN\n    PERFORM {schema}.refuse_isolation_1();\n  END IF;\n  its_life",
        "THEN\n    PERFORM 1;\n  END IF;\n  its_life",
        property!(pooled::in_an_old_snapshot_nothing_is_opened_or_committed),
    ),
    (
        "THEN\n    PERFORM {schema}.refuse_isolation_1();\n  END IF;\n  PERFORM set_config",
        "THEN\n    PERFORM 1;\n  END IF;\n  PERFORM set_config",
        property!(pooled::in_an_old_snapshot_nothing_is_opened_or_committed),
    ),
];

/// Without it a commit waits until the test gives up.
const TIME_LIMIT: [Mutant<Postgres>; 1] = [(
    "PERFORM set_config('lock_timeout', patience, true);\n  -- A commit that was answered",
    "-- A commit that was answered",
    property!(held_up::the_server_gives_up_a_commit_that_waits_too_long),
)];

#[tokio::test]
#[ignore = "long: a schema for each line"]
async fn each_line_of_the_schema_is_needed() {
    are_needed(&MUTANTS).await;
}

#[tokio::test]
#[ignore = "long: 120 s until the test gives up"]
async fn the_time_limit_of_commits_is_needed() {
    are_needed(&TIME_LIMIT).await;
}

async fn are_needed(mutants: &[Mutant<Postgres>]) {
    let mutant = async |line, instead| Postgres::mutant(line, instead, Tables::Logged).await;
    assert_needed(mutants, Postgres::bare, mutant).await;
}
