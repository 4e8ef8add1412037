//! `docs/fence/redis.lua`.

use redis::{RedisError, Script, ScriptInvocation, aio::MultiplexedConnection};
use ringfence::Token;
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::ask;

use super::{BALANCE, Resource, block, holder, keeps_the_greatest};

const FILE: &str = include_str!("../../docs/fence/redis.lua");

/// A field of a hash.
pub(crate) struct Account(MultiplexedConnection);

impl Account {
    /// The answer to `command` on the account's hash, if `token` may.
    async fn guarded(&mut self, token: &str, command: &[&str]) -> Result<i64, RedisError> {
        let script = Script::new(FILE);
        let call: &mut ScriptInvocation<'_> = &mut script.key("account:42:fence");
        call.key("account:42").arg(token).arg(command);
        call.invoke_async(&mut self.0).await
    }
}

impl Resource for Account {
    const KIND: &str = "redis";

    async fn connect(address: &str) -> Self {
        let client = redis::Client::open(address).unwrap();
        Self(client.get_multiplexed_async_connection().await.unwrap())
    }

    async fn balance(&mut self) -> i64 {
        let balance = redis::Cmd::hget("account:42", "balance");
        balance.query_async(&mut self.0).await.unwrap()
    }

    async fn read(&mut self, token: Token) -> i64 {
        let command = ["HGET", "account:42", "balance"];
        self.guarded(&token.to_string(), &command).await.unwrap()
    }

    async fn write(&mut self, token: Token, balance: i64) -> bool {
        let command = ["HSET", "account:42", "balance", &balance.to_string()];
        match self.guarded(&token.to_string(), &command).await {
            Ok(fields_added) => fields_added == 0,
            Err(error) if error.code() == Some("FENCED") => false,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn server() -> RedisServer {
    let server = RedisServer::spawn().await.unwrap();
    let balance = BALANCE.to_string();
    ask::<()>(&server, &["HSET", "account:42", "balance", &balance]).await;
    server
}

#[tokio::test]
async fn a_holder_that_was_stopped_writes_too_late() {
    holder::writes_too_late::<Account>(&server().await.url()).await;
}

#[tokio::test]
async fn the_greatest_token_is_kept() {
    keeps_the_greatest::<Account>(&server().await.url()).await;
}

#[tokio::test]
async fn an_invalid_token_writes_nothing() {
    let server = server().await;
    let mut account = Account::connect(&server.url()).await;
    let beyond = (1_u64 << 63).to_string();
    for token in [
        "",
        "0",
        "-1",
        "1.5",
        "1e3",
        "abc",
        &beyond,
        "01234567890123456789",
    ] {
        let refused = account.guarded(token, &["DEL", "account:42"]).await;
        assert_eq!(refused.unwrap_err().code(), Some("ERR"), "{token}");
    }
    assert_eq!(account.balance().await, BALANCE);
    assert_eq!(
        ask::<u64>(&server, &["EXISTS", "account:42:fence"]).await,
        0
    );
}

#[tokio::test]
async fn writes_of_ones_own_take_the_place_of_the_command() {
    let server = server().await;
    let mut account = Account::connect(&server.url()).await;
    let own = FILE.replace("return redis.call(unpack(ARGV, 2))", block("lua"));
    assert_ne!(own, FILE);
    let script = Script::new(&own);
    let mut deduct = async |token: u64, amount: i64| -> Result<i64, RedisError> {
        let mut call = script.key("account:42:fence");
        call.key("account:42").arg(token).arg(amount);
        call.invoke_async(&mut account.0).await
    };
    assert_eq!(deduct(7, 30).await.unwrap(), 70);
    assert_eq!(deduct(6, 30).await.unwrap_err().code(), Some("FENCED"));
    assert_eq!(deduct(7, 80).await.unwrap_err().code(), Some("SHORT"));
    assert_eq!(deduct(8, 70).await.unwrap(), 0);
}
