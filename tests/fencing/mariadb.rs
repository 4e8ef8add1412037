//! `docs/fence/mariadb.sql`.

use mysql_async::{Conn, params, prelude::Queryable};
use ringfence::Token;
use ringfence_test_support::database::mariadb::{MariaDb, connect};

use super::{
    BALANCE, Resource, holder, keeps_the_greatest,
    overtaken::{Database, overtaken},
    update,
};

pub(crate) const FILE: &str = include_str!("../../docs/fence/mariadb.sql");

/// The default level, with a snapshot taken.
const REPEATABLE_READ: [&str; 2] = ["START TRANSACTION", "SELECT balance FROM account"];

/// The same, as it is by default from 11.6 on.
const SNAPSHOT: [&str; 3] = [
    "SET innodb_snapshot_isolation = ON",
    "START TRANSACTION",
    "SELECT balance FROM account",
];

/// A column beside the balance, and a condition.
pub(crate) struct Row(Conn);

/// The procedure, called first in the transaction.
pub(crate) struct Stored(Conn);

impl Stored {
    async fn check(&mut self, token: Token) -> Result<(), String> {
        let check = "CALL check_fence('account/42', ?)";
        coded(self.0.exec_drop(check, (token.get(),)).await)
    }
}

/// What came of a statement, or what the error is called.
fn coded<T>(answer: mysql_async::Result<T>) -> Result<T, String> {
    answer.map_err(|error| match error {
        mysql_async::Error::Server(error) => format!("{} {}", error.state, error.code),
        error => error.to_string(),
    })
}

async fn balance(connection: &mut Conn) -> i64 {
    let balance = "SELECT balance FROM account WHERE id = 42";
    connection.query_first(balance).await.unwrap().unwrap()
}

async fn somebody_waits(connection: &mut Conn) -> bool {
    // Not innodb_lock_waits: a session that polls it sees a cached result.
    let waiting = "SHOW GLOBAL STATUS LIKE 'innodb_row_lock_current_waits'";
    let waiting: Option<(String, u64)> = connection.query_first(waiting).await.unwrap();
    waiting.unwrap().1 > 0
}

impl Resource for Row {
    const KIND: &str = "a row of MariaDB";

    async fn connect(address: &str) -> Self {
        let counting_matches = format!("{address}&client_found_rows=true");
        Self(connect(&counting_matches).await.unwrap())
    }

    async fn balance(&mut self) -> i64 {
        balance(&mut self.0).await
    }

    async fn read(&mut self, token: Token) -> i64 {
        let claim = "UPDATE account SET fence = :token WHERE id = 42 AND fence <= :token";
        let claimed = self.0.exec_drop(claim, params! { "token" => token.get() });
        claimed.await.unwrap();
        assert_eq!(self.0.affected_rows(), 1);
        self.balance().await
    }

    async fn write(&mut self, token: Token, balance: i64) -> bool {
        self.change(token, balance).await.unwrap()
    }
}

impl Database for Row {
    async fn execute(&mut self, statement: &str) {
        self.0.query_drop(statement).await.unwrap();
    }

    async fn change(&mut self, token: Token, balance: i64) -> Result<bool, String> {
        let values = params! { "balance" => balance, "token" => token.get(), "id" => 42 };
        coded(self.0.exec_drop(update(), values).await)?;
        Ok(self.0.affected_rows() == 1)
    }

    async fn somebody_waits(&mut self) -> bool {
        somebody_waits(&mut self.0).await
    }
}

impl Resource for Stored {
    const KIND: &str = "a procedure of MariaDB";

    async fn connect(address: &str) -> Self {
        Self(connect(address).await.unwrap())
    }

    async fn balance(&mut self) -> i64 {
        balance(&mut self.0).await
    }

    async fn read(&mut self, token: Token) -> i64 {
        self.check(token).await.unwrap();
        self.balance().await
    }

    async fn write(&mut self, token: Token, balance: i64) -> bool {
        self.execute("START TRANSACTION").await;
        let changed = self.change(token, balance).await.unwrap();
        let end = if changed { "COMMIT" } else { "ROLLBACK" };
        self.execute(end).await;
        changed
    }
}

impl Database for Stored {
    async fn execute(&mut self, statement: &str) {
        self.0.query_drop(statement).await.unwrap();
    }

    async fn change(&mut self, token: Token, balance: i64) -> Result<bool, String> {
        match self.check(token).await {
            Err(code) if code == "RF001 1644" => return Ok(false),
            checked => checked?,
        }
        let update = "UPDATE account SET balance = ? WHERE id = 42";
        coded(self.0.exec_drop(update, (balance,)).await)?;
        Ok(true)
    }

    async fn somebody_waits(&mut self) -> bool {
        somebody_waits(&mut self.0).await
    }
}

async fn server() -> MariaDb {
    let server = MariaDb::spawn().await;
    let account = format!(
        "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL);
         INSERT INTO account VALUES (42, {BALANCE});
         ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;"
    );
    server.run(&account).await;
    server.run(FILE).await;
    server
}

#[tokio::test]
async fn a_holder_that_was_stopped_writes_too_late_to_a_row() {
    holder::writes_too_late::<Row>(&server().await.address()).await;
}

#[tokio::test]
async fn a_holder_that_was_stopped_writes_too_late_through_the_procedure() {
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
    let begin = &REPEATABLE_READ;
    assert_eq!(overtaken::<Row>(&address, begin).await, Ok(false));
    assert_eq!(overtaken::<Stored>(&address, begin).await, Ok(false));
    // "Record has changed since last read".
    let failed = || Err("HY000 1020".to_owned());
    assert_eq!(overtaken::<Row>(&address, &SNAPSHOT).await, failed());
    assert_eq!(overtaken::<Stored>(&address, &SNAPSHOT).await, failed());
}

#[tokio::test]
async fn rows_that_do_not_change_count_only_where_the_client_asks_for_matches() {
    let server = server().await;
    let token = Token::from_number(7);
    let mut by_default = Row(server.connect().await);
    assert!(by_default.write(token, 70).await);
    assert!(
        !by_default.write(token, 70).await,
        "not refused, but 0 rows"
    );
    let mut asking = Row::connect(&server.address()).await;
    assert!(asking.write(token, 70).await);
}
