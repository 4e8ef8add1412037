//! What `docs/fencing.md` tells users to do, done.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

use std::time::Duration;

use redis::{Script, aio::MultiplexedConnection};
use ringfence::Token;
use ringfence_test_support::{Servers, connection, eventually};

/// The code of the first block of `language` in the page.
fn code(language: &str) -> String {
    let page = include_str!("../docs/fencing.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

async fn write(resource: &mut MultiplexedConnection, token: Token, value: &str) -> bool {
    let script = Script::new(&code("lua"));
    let mut call = script.key("balance");
    let call = call
        .key("balance:fence")
        .arg(format!("{token:019}"))
        .arg(value);
    call.invoke_async(resource).await.unwrap()
}

#[tokio::test]
async fn a_holder_that_wakes_late_cannot_write() {
    let servers = Servers::spawn(2).await;
    let mut resource = connection(&servers.servers[0]).await;
    let client = servers.client().await;
    let lock = client
        .lock("account/42")
        .hold_for(Duration::from_millis(200));
    let paused = lock.try_acquire().await.unwrap();
    assert!(write(&mut resource, paused.token(), "by the first").await);
    assert!(write(&mut resource, paused.token(), "by the first again").await);
    eventually("over", async || !paused.is_held()).await;

    let later = client.lock("account/42").acquire().await.unwrap();
    assert!(write(&mut resource, later.token(), "by the second").await);
    assert!(!write(&mut resource, paused.token(), "too late").await);
    let value: String = redis::Cmd::get("balance")
        .query_async(&mut resource)
        .await
        .unwrap();
    assert_eq!(value, "by the second");
}

#[tokio::test]
async fn tokens_are_compared_as_numbers_whatever_their_length() {
    let servers = Servers::spawn(1).await;
    let mut resource = connection(&servers.servers[0]).await;
    // Beyond 2^53 doubles do not tell these from each other.
    let tokens = [
        9,
        10,
        (1 << 53) - 1,
        1 << 60,
        (1 << 60) + 1,
        i64::MAX as u64,
    ];
    for (at, token) in tokens.into_iter().enumerate() {
        assert!(write(&mut resource, Token::from_number(token), "new").await);
        for earlier in &tokens[..at] {
            assert!(!write(&mut resource, Token::from_number(*earlier), "old").await);
        }
    }
}
