use ringfence_coordinator::spawn::RedisServer;

use super::*;

const OPENING: i64 = 100;

fn deduction(number: u32, token: Option<u64>, (before, after): (i64, i64)) -> Deduction {
    let op = OpId { worker: 0, number };
    Deduction {
        account: 7,
        op,
        token: token.map(Token::from_number),
        before,
        after,
    }
}

/// 63 bits, more than a double is exact to.
const GREAT: u64 = i64::MAX as u64;

async fn a_smaller_token_is_refused(bank: &dyn Bank) {
    let mut accepted = Vec::new();
    for (number, newer, older) in [(1, 10, 9), (2, GREAT, GREAT - 1)] {
        let newer = deduction(number, Some(newer), (100, 90));
        let older = deduction(number, Some(older), (90, 80));
        let without = deduction(number, None, (90, 85));
        assert_eq!(bank.write(newer).await.unwrap(), Verdict::Accepted);
        assert_eq!(bank.write(older).await.unwrap(), Verdict::Fenced);
        assert_eq!(bank.read(7).await.unwrap(), 90);
        assert_eq!(bank.write(without).await.unwrap(), Verdict::Accepted);
        assert_eq!(bank.write(older).await.unwrap(), Verdict::Fenced);
        accepted.extend([newer, without]);
    }
    assert_eq!(bank.close().await.unwrap().journal, accepted);
}

async fn tokens_of_other_accounts_do_not_matter(bank: &dyn Bank) {
    let one = deduction(1, Some(9), (100, 90));
    let other = Deduction {
        account: 8,
        ..deduction(2, Some(5), (100, 99))
    };
    assert_eq!(bank.write(one).await.unwrap(), Verdict::Accepted);
    assert_eq!(bank.write(other).await.unwrap(), Verdict::Accepted);
}

async fn it_writes_as_told(bank: &dyn Bank) {
    let first = deduction(1, Some(5), (100, 90));
    let stale = deduction(2, Some(5), (100, 99));
    assert_eq!(bank.write(first).await.unwrap(), Verdict::Accepted);
    assert_eq!(bank.write(stale).await.unwrap(), Verdict::Accepted);

    let books = bank.close().await.unwrap();
    assert_eq!(books.journal, [first, stale]);
    assert_eq!((books.opening, books.balances.len()), (OPENING, 10));
    assert_eq!((books.balances[7], books.balances[8]), (99, OPENING));
}

async fn in_memory() -> ((), MemoryBank) {
    ((), MemoryBank::open(10, OPENING))
}

async fn on_servers() -> (Vec<RedisServer>, RedisBank) {
    let servers = [
        RedisServer::spawn().await.unwrap(),
        RedisServer::spawn().await.unwrap(),
    ];
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let bank = RedisBank::open(&urls, "test", (10, OPENING)).await.unwrap();
    (servers.into(), bank)
}

macro_rules! contract {
    ($($bank:ident: $make:ident),+ has $properties:tt) => {
        $(mod $bank { contract!(@each $make $properties); })+
    };
    (@each $make:ident { $($property:ident),+ $(,)? }) => {
        $(#[tokio::test]
        async fn $property() {
            let (_servers, bank) = super::$make().await;
            super::$property(&bank).await;
        })+
    };
}

contract!(memory: in_memory, redis: on_servers has {
    a_smaller_token_is_refused,
    tokens_of_other_accounts_do_not_matter,
    it_writes_as_told,
});

async fn ask<T: ::redis::FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let command = ::redis::Cmd::new().arg(words).to_owned();
    command.query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_closed_bank_leaves_nothing_on_its_servers() {
    let (servers, bank) = on_servers().await;
    bank.write(deduction(1, Some(5), (100, 90))).await.unwrap();
    bank.close().await.unwrap();
    for server in &servers {
        assert_eq!(ask::<Vec<String>>(server, &["KEYS", "*"]).await, [""; 0]);
    }
}

#[tokio::test]
async fn data_of_a_dead_run_expires() {
    let (servers, bank) = on_servers().await;
    bank.write(deduction(1, Some(5), (100, 90))).await.unwrap();
    for server in &servers {
        let keys: Vec<String> = ask(server, &["KEYS", "*"]).await;
        assert_eq!(keys.len(), 3, "{keys:?}");
        for key in keys {
            let left: i64 = ask(server, &["TTL", &key]).await;
            assert!((3000..=3600).contains(&left), "{key}: {left} s");
        }
    }
}

#[tokio::test]
async fn lost_data_is_not_taken_for_empty() {
    let (servers, bank) = on_servers().await;
    let gone = |error: BankError| matches!(error, BankError::Gone(_));
    for server in &servers {
        ask::<()>(server, &["FLUSHALL"]).await;
    }
    assert!(gone(bank.read(7).await.unwrap_err()));
    assert!(gone(
        bank.write(deduction(1, Some(5), (100, 90)))
            .await
            .unwrap_err()
    ));
    assert!(gone(bank.close().await.unwrap_err()));
}

#[tokio::test]
async fn a_lost_journal_is_not_an_empty_one() {
    let (servers, bank) = on_servers().await;
    ask::<()>(&servers[1], &["DEL", "ringfence-demo:test:journal"]).await;
    assert!(matches!(
        bank.close().await.unwrap_err(),
        BankError::Gone(_)
    ));
}
