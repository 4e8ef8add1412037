//! A user of the servers with fewer rights than needed.

use ringfence_client::{AcquireError, Client, ReleaseAnswer};
use ringfence_test_support::{Servers, eventually, rights};

use super::{DEADLINE, SECOND};

const USER: &str = "narrow";

/// Two clients of one server, as a user with the rights that docs/operate/servers.md lists.
struct Narrow {
    servers: Servers,
}

impl Narrow {
    async fn new() -> Self {
        let servers = Servers::spawn(1).await;
        let narrow = Self { servers };
        narrow
            .set_user(&[&["reset", "on", ">s3cret"], &words()[..]].concat())
            .await;
        narrow
    }

    async fn set_user(&self, rules: &[&str]) {
        let words = [&["ACL", "SETUSER", USER], rules].concat();
        self.servers.ask::<()>(0, &words).await;
    }

    fn url(&self) -> String {
        format!(
            "redis://{USER}:s3cret@127.0.0.1:{}",
            self.servers.servers[0].port()
        )
    }

    async fn client(&self) -> Result<Client, String> {
        let builder = Client::builder().redis([self.url()]).servers_are_new(true);
        builder.build().await.map_err(|error| error.to_string())
    }
}

fn words() -> Vec<&'static str> {
    rights().split(' ').collect()
}

#[tokio::test]
async fn a_user_without_a_right_that_scripts_need_is_told_which_and_the_line_that_mends_it() {
    for (rules, lacks) in [
        (
            &["resetchannels", "&ringfence:topology"][..],
            "PUBLISH on ringfence:turn:",
        ),
        (
            &["resetchannels", "&ringfence:turn:*"],
            "PUBLISH on ringfence:topology",
        ),
        (&["-subscribe"], "SUBSCRIBE on ringfence:"),
        (&["-zadd"], "ZADD on ringfence:"),
    ] {
        let narrow = Narrow::new().await;
        narrow.set_user(rules).await;
        let refused = narrow.client().await.map(drop).unwrap_err();
        assert!(refused.contains(lacks), "{rules:?}: {refused}");
        let mend = format!("ACL SETUSER {USER} {}", rights());
        assert!(refused.contains(&mend), "{rules:?}: {refused}");
        narrow.set_user(&words()).await;
        narrow.client().await.unwrap().close().await;
    }
}

/// What a script has written when it comes to its messages stands, and is answered.
#[tokio::test]
async fn a_channel_right_that_is_taken_away_fails_no_request() {
    let narrow = Narrow::new().await;
    let (holder, waiter) = (
        narrow.client().await.unwrap(),
        narrow.client().await.unwrap(),
    );
    let guard = holder.lock("key").acquire().await.unwrap();
    let first = guard.token();
    narrow.set_user(&["resetchannels"]).await;

    let refused = waiter
        .lock("key")
        .wait(SECOND / 5)
        .acquire()
        .await
        .unwrap_err();
    let is_held = |error: &AcquireError| matches!(error, AcquireError::TimedOut { because, .. } if matches!(**because, AcquireError::Held { .. }));
    assert!(is_held(&refused), "{refused:?}");

    let lock = waiter.lock("key").wait(DEADLINE);
    let given_back = async {
        eventually("a ticket", async || {
            let queues: Vec<String> = narrow.servers.ask(0, &["KEYS", "ringfence:queue:*"]).await;
            !queues.is_empty()
        })
        .await;
        guard.release().await
    };
    let (next, released) = tokio::join!(lock.acquire(), given_back);
    let next = next.unwrap();
    assert_eq!(released, ReleaseAnswer::Held);
    assert!(next.token() > first);
    assert_eq!(next.release().await, ReleaseAnswer::Held);
}
