//! Lines of the schema on MariaDB.

use ringfence_conformance::store;

use super::{Mutant, assert_needed, property};
use crate::{docs::held_up, mariadb_fixture::Maria};

const MUTANTS: [Mutant<Maria>; 19] = [
    (
        "IF NOT present <=> its_life THEN",
        "IF false THEN",
        property!(store::in_another_life_nothing_is_committed),
    ),
    (
        "SELECT ifnull(max(concat(l.id, `{p}_server_1`())) = its_life, false) INTO is_alive FROM",
        "SELECT true INTO is_alive FROM",
        property!(store::in_another_life_nothing_is_read),
    ),
    (
        "SELECT ifnull(max(concat(l.id, `{p}_server_1`())) = its_life, false), now_ms",
        "SELECT true, now_ms",
        property!(store::in_another_life_nothing_is_read),
    ),
    (
        "IF there = 0 THEN",
        "IF false THEN",
        property!(store::a_session_that_another_one_ended_commits_nothing),
    ),
    (
        "DELETE FROM `{p}_gates` WHERE id = former;",
        "DO 1;",
        property!(store::a_session_that_another_one_ended_commits_nothing),
    ),
    (
        "WHERE g.id = gate FOR UPDATE;",
        "WHERE g.id = gate;",
        property!(held_up::a_commit_on_its_way_is_over_before_its_session_is_ended),
    ),
    (
        "`{p}_life` l LOCK IN SHARE MODE;",
        "`{p}_life` l;",
        property!(held_up::a_change_of_the_head_waits_for_commits_that_depend_on_it),
    ),
    (
        "`{p}_life` l FOR UPDATE;",
        "`{p}_life` l;",
        property!(held_up::a_change_of_the_head_waits_for_commits_that_depend_on_it),
    ),
    (
        "ON d.name = unhex(n.name)\n      FOR UPDATE;",
        "ON d.name = unhex(n.name);",
        property!(held_up::a_change_of_a_document_waits_for_commits_that_check_it),
    ),
    (
        "WHERE NOT d.version <=> e.version;\n  IF stale IS NOT NULL THEN\n    ROLLBACK;",
        "WHERE false;\n  IF stale IS NOT NULL THEN\n    ROLLBACK;",
        property!(held_up::a_commit_behind_a_change_of_what_it_checks_is_refused),
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
        "WHERE w.is_any OR d.version = w.version;",
        ";",
        property!(store::of_commits_at_once_that_make_one_document_one_is_done),
    ),
    (
        "IF made < wanted OR",
        "IF",
        property!(store::of_commits_at_once_that_make_one_document_one_is_done),
    ),
    (
        "DECLARE EXIT HANDLER FOR 1062, 1213, 1205",
        "DECLARE EXIT HANDLER FOR 1213, 1205",
        property!(store::of_commits_at_once_that_make_one_document_one_is_done),
    ),
    (
        "FROM `{p}_tokens` t FOR UPDATE;",
        "FROM `{p}_tokens` t;",
        property!(store::no_two_draws_take_one_token),
    ),
    (
        "IF NOT is_alive OR is_stale OR tokens = 0 THEN",
        "IF NOT is_alive OR tokens = 0 THEN",
        property!(store::a_draw_by_another_head_takes_nothing),
    ),
    (
        "IF (last_token & 34359738367) + drawn > {counter_max} THEN",
        "IF false THEN",
        property!(store::a_draw_beyond_the_last_counter_takes_nothing),
    ),
    (
        "SET t.last = at_least WHERE t.last < at_least;",
        "SET t.last = at_least;",
        property!(store::a_commit_raises_the_last_token_and_lowers_it_only_if_told),
    ),
];

#[tokio::test]
#[ignore = "long: a schema for each line"]
async fn each_line_of_the_schema_is_needed() {
    let mutant = async |line, instead| Maria::mutant(line, instead).await;
    assert_needed(&MUTANTS, Maria::bare, mutant).await;
}
