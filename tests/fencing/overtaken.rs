//! An earlier holder's write that waits in the database for a later one's.

use std::time::Duration;

use ringfence::Token;
use tokio::time::{sleep, timeout};

use super::{BALANCE, Resource};

const PATIENCE: Duration = Duration::from_secs(120);

/// A resource in a database with transactions.
pub(crate) trait Database: Resource {
    async fn execute(&mut self, statement: &str);

    /// As [`Resource::write`], within the current transaction. Fails with the SQLSTATE of any
    /// error other than a refusal.
    async fn change(&mut self, token: Token, balance: i64) -> Result<bool, String>;

    /// Whether any transaction waits for a lock.
    async fn somebody_waits(&mut self) -> bool;
}

/// What becomes of an earlier holder's change, in a transaction that it has begun by `begin`, if a
/// later one's is under way: it waits for that one, and the later balance remains.
pub(crate) async fn overtaken<D: Database>(address: &str, begin: &[&str]) -> Result<bool, String> {
    let (mut earlier, mut later) = (D::connect(address).await, D::connect(address).await);
    let mut observer = D::connect(address).await;
    let [first, second, third] = [1, 2, 3].map(Token::from_number);
    later.execute("DELETE FROM fences").await;
    later.execute("UPDATE account SET fence = 0").await;
    assert!(later.write(first, BALANCE).await);

    for statement in begin {
        earlier.execute(statement).await;
    }
    later.execute("BEGIN").await;
    assert_eq!(later.change(third, 50).await, Ok(true));
    let ahead = async {
        let waits = async {
            while !observer.somebody_waits().await {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waits).await.expect("it waits");
        later.execute("COMMIT").await;
    };
    let (changed, ()) = tokio::join!(earlier.change(second, 70), ahead);
    earlier.execute("COMMIT").await;
    assert_eq!(observer.balance().await, 50, "{changed:?}");
    changed
}
