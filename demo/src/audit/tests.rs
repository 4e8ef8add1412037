use proptest::{collection::vec, prelude::*, sample::Index};
use ringfence_client::Token;

use super::*;
use crate::bank::OpId;

const OPENING: i64 = 1_000;
const ACCOUNTS: u32 = 4;

/// Correct books: `steps` are the accounts and amounts of the deductions.
fn books(steps: &[(u32, i64)]) -> Books {
    let mut balances = vec![OPENING; ACCOUNTS as usize];
    let journal = (1..).zip(steps).map(|(number, &(account, amount))| {
        let before = balances[account as usize];
        balances[account as usize] -= amount;
        let token = Some(Token::from_number(u64::from(number) * 10));
        Deduction {
            account,
            op: OpId { worker: 1, number },
            token,
            before,
            after: before - amount,
        }
    });
    let journal = journal.collect();
    Books {
        opening: OPENING,
        balances,
        journal,
    }
}

/// Three deductions from account 2: 1000 → 999 → 997 → 994.
fn three() -> Books {
    books(&[(2, 1), (2, 2), (2, 3)])
}

fn found(books: &Books) -> Vec<String> {
    audit(books).iter().map(ToString::to_string).collect()
}

#[test]
fn books_in_order_are_fine() {
    assert_eq!(found(&three()), [""; 0]);
    assert_eq!(found(&books(&[])), [""; 0]);
}

#[test]
fn coins_that_came_back_are_lost_deductions() {
    let mut books = three();
    books.balances[2] += 3;
    let lost = "account 2: lost: 6 deducted, balance fell by 3, from op 1/3 (token 30) on";
    assert_eq!(found(&books), [lost]);
}

#[test]
fn coins_gone_without_a_deduction_are_found() {
    let mut books = three();
    books.balances[1] -= 5;
    assert_eq!(
        found(&books),
        ["account 1: lost: 0 deducted, balance fell by 5"]
    );
}

#[test]
fn an_overwritten_deduction_is_named() {
    let mut books = three();
    // The second and the third both read the balance that the first had left.
    books.journal[2].before = 999;
    books.journal[2].after = 996;
    books.balances[2] = 996;
    let expected = [
        "account 2: lost: 6 deducted, balance fell by 4, from op 1/2 (token 20) on",
        "account 2: overwritten: op 1/2 (token 20) left 997, but op 1/3 (token 30) had read 999",
    ];
    assert_eq!(found(&books), expected);
}

#[test]
fn the_first_deduction_reads_the_opening() {
    let mut books = three();
    books.journal.remove(0);
    let expected = [
        "account 2: lost: 5 deducted, balance fell by 6, from op 1/3 (token 30) on",
        "account 2: overwritten: the opening left 1000, but op 1/2 (token 20) had read 999",
    ];
    assert_eq!(found(&books), expected);
}

#[test]
fn a_deduction_made_twice_is_doubled_and_not_out_of_order() {
    let mut books = three();
    books.journal.push(Deduction {
        before: 994,
        after: 991,
        ..books.journal[2]
    });
    books.balances[2] = 991;
    let doubled = "account 2: doubled: op 1/3 (token 30), first at account 2: op 1/3 (token 30)";
    assert_eq!(found(&books), [doubled]);
}

#[test]
fn a_deduction_made_at_two_accounts_is_doubled() {
    let mut books = books(&[(2, 1), (3, 1)]);
    books.journal[1].op = books.journal[0].op;
    let doubled = "account 3: doubled: op 1/1 (token 20), first at account 2: op 1/1 (token 10)";
    assert_eq!(found(&books), [doubled]);
}

#[test]
fn a_token_that_goes_down_is_out_of_order() {
    let mut books = three();
    books.journal[2].token = Some(Token::from_number(19));
    let late = "account 2: out of order: op 1/3 (token 19) came after op 1/2 (token 20)";
    assert_eq!(found(&books), [late]);
}

#[test]
fn one_token_for_two_deductions_is_out_of_order() {
    let mut books = three();
    books.journal[2].token = books.journal[1].token;
    let late = "account 2: out of order: op 1/3 (token 20) came after op 1/2 (token 20)";
    assert_eq!(found(&books), [late]);
}

#[test]
fn a_token_is_compared_across_those_without() {
    let mut books = three();
    books.journal[1].token = None;
    books.journal[2].token = Some(Token::from_number(9));
    let late = "account 2: out of order: op 1/3 (token 9) came after op 1/1 (token 10)";
    assert_eq!(found(&books), [late]);
}

#[test]
fn tokens_of_other_accounts_do_not_matter() {
    let mut books = books(&[(1, 1), (2, 2)]);
    books.journal[1].token = books.journal[0].token;
    assert_eq!(found(&books), [""; 0]);
}

#[test]
fn less_than_nothing_is_negative() {
    let books = books(&[(2, OPENING), (2, 1)]);
    assert_eq!(
        found(&books),
        ["account 2: negative: op 1/2 (token 20) left -1"]
    );
}

/// The possible faults at some deduction.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It is removed from the journal.
    Struck,
    /// It is made from a balance that is wrong by this much.
    Stale(i64),
    /// It is made again right after.
    Again,
    /// Its token is that of the account's deduction before it, less this much.
    Token(u64),
    /// The account's last balance is wrong by this much.
    Balance(i64),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Struck),
        (1..5i64).prop_map(Fault::Stale),
        Just(Fault::Again),
        (0..9u64).prop_map(Fault::Token),
        (1..5i64).prop_map(Fault::Balance),
    ]
}

/// Applies the fault to the books. Returns the expected account and kind; `None` if this deduction cannot have this
/// fault.
fn break_at(books: &mut Books, at: usize, fault: Fault) -> Option<(u32, &'static str)> {
    let here = books.journal[at];
    let kind = match fault {
        Fault::Struck => {
            books.journal.remove(at);
            "lost"
        }
        Fault::Stale(by) => {
            books.journal[at].before += by;
            books.journal[at].after += by;
            "overwritten"
        }
        Fault::Again => {
            books.journal.insert(at + 1, here);
            "doubled"
        }
        Fault::Token(less) => {
            let before = books.journal[..at]
                .iter()
                .rfind(|former| former.account == here.account);
            let token = before?.token.expect("all have one").get() - less;
            books.journal[at].token = Some(Token::from_number(token));
            "out_of_order"
        }
        Fault::Balance(by) => {
            books.balances[here.account as usize] += by;
            "lost"
        }
    };
    Some((here.account, kind))
}

proptest! {
    #[test]
    fn every_fault_is_found_and_nothing_else_is_blamed(
        steps in vec((0..ACCOUNTS, 1..10i64), 1..40),
        at in any::<Index>(),
        fault in fault(),
    ) {
        let mut books = books(&steps);
        prop_assert_eq!(audit(&books), []);
        let at = at.index(steps.len());
        let Some((account, kind)) = break_at(&mut books, at, fault) else { return Ok(()) };

        let found = serde_json::to_value(audit(&books)).unwrap();
        let found = found.as_array().unwrap();
        let here = |violation: &serde_json::Value| violation["account"] == account;
        let named = |violation| here(violation) && violation["kind"] == kind;
        prop_assert!(found.iter().any(named), "{found:?}");
        prop_assert!(found.iter().all(here), "{found:?}");
    }
}
