//! Accounts, page by page.

use std::sync::Arc;

use futures_util::{Stream, stream};
use ringfence_api::{
    Error,
    v1::{self, AccountCondition, ListAccountsResponse},
};
use ringfence_client::{AccountList, AccountListPage, ListedAccount};
use tokio::time::Instant;
use tonic::Status;

use super::messages::{failure, segments};
use crate::{
    access::{Admitted, Caller},
    deadline::Deadline,
    errors,
};

/// The conditions of accounts that are listed. None: all are.
pub(super) struct Conditions(Vec<AccountCondition>);

impl Conditions {
    pub(super) fn of(conditions: &[i32]) -> Result<Self, Error> {
        let known = |&condition: &i32| match AccountCondition::try_from(condition) {
            Ok(AccountCondition::Unspecified) | Err(_) => {
                let limit = "values of AccountCondition";
                Err(Error::invalid("conditions", condition, limit))
            }
            Ok(condition) => Ok(condition),
        };
        Ok(Self(
            conditions.iter().map(known).collect::<Result<_, _>>()?,
        ))
    }

    /// Whether an account is listed. One that cannot be read is.
    fn let_pass(&self, listed: &ListedAccount) -> bool {
        let Ok(found) = &listed.found else {
            return true;
        };
        let has = |condition: &AccountCondition| match condition {
            AccountCondition::InDoubt => found.is_in_doubt(),
            AccountCondition::Lost => !found.lost.0.is_empty(),
            AccountCondition::Held => found.has_held(),
            AccountCondition::Unfinished => found.has_unfinished(),
            AccountCondition::Unspecified => false,
        };
        self.0.is_empty() || self.0.iter().any(has)
    }
}

/// The pages of `accounts`. The next page is requested once the caller has taken the one before.
pub(super) fn pages(
    accounts: AccountList,
    of_call: (Conditions, Arc<Caller>, Deadline),
    admitted: Admitted,
) -> impl Stream<Item = Result<ListAccountsResponse, Status>> {
    let (begun, walk) = (Instant::now(), Some((accounts, admitted)));
    stream::unfold((walk, of_call), move |(walk, of_call)| async move {
        let (mut accounts, admitted) = walk?;
        let (conditions, caller, deadline) = &of_call;
        let read = async {
            let deadline = deadline.later(begun.elapsed())?;
            deadline.run(caller.page(accounts.next())).await
        };
        let (page, walk) = match read.await {
            Ok(page) => (Ok(response(page?, conditions)), Some((accounts, admitted))),
            Err(error) => (Err(error.into()), None),
        };
        Some((page, (walk, of_call)))
    })
}

fn response(page: AccountListPage, conditions: &Conditions) -> ListAccountsResponse {
    let (accounts, error) = match page.accounts {
        Ok(accounts) => (accounts, String::new()),
        Err(error) => (Vec::new(), error.to_string()),
    };
    let wanted = accounts.into_iter();
    let wanted = wanted.filter(|listed| conditions.let_pass(listed));
    ListAccountsResponse {
        shard: page.shard.to_string(),
        accounts: wanted.map(message).collect(),
        error,
    }
}

fn message(ListedAccount { account, found }: ListedAccount) -> v1::ListedAccount {
    let (segments, failure) = match found {
        Ok(found) => (Some(segments(&found)), None),
        Err(error) => (None, Some(failure(errors::counter(&error)))),
    };
    v1::ListedAccount {
        name: account.to_string(),
        segments,
        failure,
    }
}
