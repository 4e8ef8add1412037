//! `docs/fence/postgresql.sql`.

use ringfence::Token;
use ringfence_test_support::database::postgresql::{Connection, PostgreSql, connect};

use super::{
    BALANCE, Resource, holder, keeps_the_greatest,
    overtaken::{Database, overtaken},
    update,
};

pub(crate) const FILE: &str = include_str!("../../docs/fence/postgresql.sql");

const REPEATABLE_READ: [&str; 2] = [
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "SELECT balance FROM account",
];

/// A column beside the balance, and a condition.
pub(crate) struct Row(Connection);

/// The function, called first in the transaction.
pub(crate) struct Stored(Connection);

impl Stored {
    async fn check(&mut self, token: Token) -> Result<(), String> {
        let check = "SELECT check_fence('account/42', $1)";
        let checked = self.0.execute(check, &[&token.as_i64()]).await;
        coded(checked).map(drop)
    }
}

/// What came of a statement: a count of rows, or what the error is called.
fn coded<T>(answer: Result<T, tokio_postgres::Error>) -> Result<T, String> {
    answer.map_err(|error| {
        let code = error.code().map(|code| code.code().to_owned());
        code.unwrap_or_else(|| error.to_string())
    })
}

async fn balance(connection: &Connection) -> i64 {
    let row = connection.query_one("SELECT balance FROM account WHERE id = 42", &[]);
    row.await.unwrap().get(0)
}

async fn somebody_waits(connection: &Connection) -> bool {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let row = connection.query_one(waiting, &[]).await.unwrap();
    row.get::<_, i64>(0) > 0
}

impl Resource for Row {
    const KIND: &str = "a row of PostgreSQL";

    async fn connect(address: &str) -> Self {
        Self(connect(address).await.unwrap())
    }

    async fn balance(&mut self) -> i64 {
        balance(&self.0).await
    }

    async fn read(&mut self, token: Token) -> i64 {
        let claim = "UPDATE account SET fence = $1 WHERE id = 42 AND fence <= $1";
        let claimed = self.0.execute(claim, &[&token.as_i64()]).await;
        assert_eq!(coded(claimed), Ok(1));
        self.balance().await
    }

    async fn write(&mut self, token: Token, balance: i64) -> bool {
        self.change(token, balance).await.unwrap()
    }
}

impl Database for Row {
    async fn execute(&mut self, statement: &str) {
        self.0.batch_execute(statement).await.unwrap();
    }

    async fn change(&mut self, token: Token, balance: i64) -> Result<bool, String> {
        let named = [(":balance", "$1"), (":token", "$2"), (":id", "$3")];
        let numbered = named
            .iter()
            .fold(update(), |text, (name, number)| text.replace(name, number));
        let (token, id) = (token.as_i64(), 42_i64);
        let rows = self.0.execute(&numbered, &[&balance, &token, &id]).await;
        coded(rows).map(|rows| rows == 1)
    }

    async fn somebody_waits(&mut self) -> bool {
        somebody_waits(&self.0).await
    }
}

impl Resource for Stored {
    const KIND: &str = "a function of PostgreSQL";

    async fn connect(address: &str) -> Self {
        Self(connect(address).await.unwrap())
    }

    async fn balance(&mut self) -> i64 {
        balance(&self.0).await
    }

    async fn read(&mut self, token: Token) -> i64 {
        self.check(token).await.unwrap();
        self.balance().await
    }

    async fn write(&mut self, token: Token, balance: i64) -> bool {
        self.execute("BEGIN").await;
        let changed = self.change(token, balance).await.unwrap();
        // What failed is rolled back by either.
        self.execute("COMMIT").await;
        changed
    }
}

impl Database for Stored {
    async fn execute(&mut self, statement: &str) {
        self.0.batch_execute(statement).await.unwrap();
    }

    async fn change(&mut self, token: Token, balance: i64) -> Result<bool, String> {
        match self.check(token).await {
            Err(code) if code == "RF001" => return Ok(false),
            checked => checked?,
        }
        let update = "UPDATE account SET balance = $1 WHERE id = 42";
        let rows = self.0.execute(update, &[&balance]).await;
        coded(rows).map(|rows| rows == 1)
    }

    async fn somebody_waits(&mut self) -> bool {
        somebody_waits(&self.0).await
    }
}

async fn server() -> PostgreSql {
    let server = PostgreSql::spawn().await;
    let account = format!(
        "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL);
         INSERT INTO account VALUES (42, {BALANCE});
         ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;"
    );
    let connection = server.connect().await;
    connection.batch_execute(&account).await.unwrap();
    connection.batch_execute(FILE).await.unwrap();
    server
}

#[tokio::test]
async fn a_holder_that_was_stopped_writes_too_late_to_a_row() {
    holder::writes_too_late::<Row>(&server().await.address()).await;
}

#[tokio::test]
async fn a_holder_that_was_stopped_writes_too_late_through_the_function() {
    holder::writes_too_late::<Stored>(&server().await.address()).await;
}

#[tokio::test]
async fn the_greatest_token_is_kept() {
    let server = server().await;
    keeps_the_greatest::<Row>(&server.address()).await;
    keeps_the_greatest::<Stored>(&server.address()).await;
}

#[tokio::test]
async fn a_writer_that_waited_for_a_later_holder_is_refused() {
    let server = server().await;
    let address = server.address();
    assert_eq!(overtaken::<Row>(&address, &["BEGIN"]).await, Ok(false));
    assert_eq!(overtaken::<Stored>(&address, &["BEGIN"]).await, Ok(false));
    // The standard's name of a serialization failure.
    let failed = || Err("40001".to_owned());
    let begin = &REPEATABLE_READ;
    assert_eq!(overtaken::<Row>(&address, begin).await, failed());
    assert_eq!(overtaken::<Stored>(&address, begin).await, failed());
}
