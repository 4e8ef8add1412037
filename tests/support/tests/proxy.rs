//! What the proxy does to real connections to a real server.

use std::{io, time::Duration};

use redis::Value;
use ringfence_test_support::{Deed, Flow, Framer, Proxy, Servers, Trap, Whose, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Far longer than a reply takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough for a reply that is not to come.
const SILENCE: Duration = Duration::from_millis(150);

/// A server and a proxy before it.
async fn proxied() -> (Servers, Proxy) {
    let servers = Servers::spawn(1).await;
    let proxy = Proxy::start(servers.servers[0].port()).await;
    (servers, proxy)
}

/// A client that shows every byte.
struct Raw {
    stream: TcpStream,
    framer: Framer,
}

impl Raw {
    async fn open(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).await;
        Self {
            stream: stream.unwrap(),
            framer: Framer::default(),
        }
    }

    async fn named(proxy: &Proxy, name: &str) -> Self {
        let mut raw = Self::open(proxy).await;
        assert_eq!(raw.ask(&["CLIENT", "SETNAME", name]).await, "+OK\r\n");
        raw
    }

    async fn send(&mut self, words: &[&str]) {
        let bulks = words
            .iter()
            .map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let request = format!("*{}\r\n{}", words.len(), bulks.collect::<String>());
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    async fn reply(&mut self) -> String {
        loop {
            if let Some(frame) = self.framer.next_frame().unwrap() {
                return String::from_utf8_lossy(frame.bytes()).into_owned();
            }
            let mut bytes = [0; 4096];
            let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await;
            let length = read.expect("a reply").unwrap();
            assert_ne!(length, 0, "closed");
            self.framer.feed(&bytes[..length]);
        }
    }

    async fn ask(&mut self, words: &[&str]) -> String {
        self.send(words).await;
        self.reply().await
    }

    /// All that comes before the connection is reset.
    async fn until_reset(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ended = timeout(PATIENCE, self.stream.read_to_end(&mut bytes));
        let error = ended.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        bytes
    }

    async fn is_silent(&mut self) -> bool {
        timeout(SILENCE, self.stream.read_u8()).await.is_err()
    }
}

async fn value_of(servers: &Servers, key: &str) -> Option<i64> {
    servers.ask(0, &["GET", key]).await
}

#[tokio::test]
async fn bytes_and_their_order_are_kept() {
    let (_servers, proxy) = proxied().await;
    proxy.both(&Whose::All, Flow::Delay(Duration::ZERO..3 * MILLISECOND));
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut pipeline = redis::pipe();
    let value = |index: usize| vec![index as u8; index * index % 9001];
    for index in 0..300 {
        pipeline.cmd("SET").arg(index).arg(value(index));
        pipeline.cmd("GET").arg(index);
    }
    let replies: Vec<Value> = pipeline.query_async(&mut connection).await.unwrap();
    for (index, pair) in replies.chunks(2).enumerate() {
        assert_eq!(pair, [Value::Okay, Value::BulkString(value(index))]);
    }
    let counts = proxy.counts(&Whose::All);
    assert_eq!(counts.connections, 1);
    assert_eq!(counts.requests, counts.replies);
    assert!(counts.requests >= 600);
}

#[tokio::test]
async fn each_way_is_delayed_by_itself() {
    let (_servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    for way in [Proxy::requests, Proxy::replies] {
        way(
            &proxy,
            &Whose::All,
            Flow::Delay(80 * MILLISECOND..90 * MILLISECOND),
        );
        let sent = Instant::now();
        raw.ask(&["PING"]).await;
        assert!(sent.elapsed() >= 80 * MILLISECOND);
        proxy.heal();
    }
}

#[tokio::test]
async fn requests_held_by_a_black_hole_arrive_when_it_ends() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["PING"]).await;
    proxy.both(&Whose::All, Flow::Hold);
    raw.send(&["INCR", "key"]).await;
    assert!(raw.is_silent().await);
    assert_eq!(value_of(&servers, "key").await, None);
    proxy.heal();
    assert_eq!(raw.reply().await, ":1\r\n");
}

#[tokio::test]
async fn lost_requests_are_not_applied_and_nothing_follows_them() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["PING"]).await;
    proxy.requests(&Whose::All, Flow::Lose);
    raw.send(&["INCR", "key"]).await;
    eventually("lost", async || {
        proxy.counts(&Whose::All).requests_lost == 1
    })
    .await;
    proxy.heal();
    raw.send(&["INCR", "key"]).await;
    assert!(raw.is_silent().await);
    assert_eq!(value_of(&servers, "key").await, None);
    assert_eq!(
        Raw::open(&proxy).await.ask(&["INCR", "key"]).await,
        ":1\r\n"
    );
}

#[tokio::test]
async fn requests_whose_replies_are_lost_are_applied() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["PING"]).await;
    proxy.replies(&Whose::All, Flow::Lose);
    raw.send(&["INCR", "key"]).await;
    eventually("lost", async || proxy.counts(&Whose::All).replies_lost == 1).await;
    proxy.heal();
    raw.send(&["INCR", "key"]).await;
    assert!(raw.is_silent().await);
    assert_eq!(value_of(&servers, "key").await, Some(2));
}

#[tokio::test]
async fn the_end_of_a_server_is_not_told_where_its_replies_are_lost() {
    let (mut servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["PING"]).await;
    proxy.replies(&Whose::All, Flow::Lose);
    servers.servers[0].kill();
    assert!(raw.is_silent().await);
    let mut other = Raw::open(&proxy).await;
    other.until_reset().await;
}

#[tokio::test]
async fn new_connections_are_refused_and_old_ones_go_on() {
    let (_servers, proxy) = proxied().await;
    let mut old = Raw::open(&proxy).await;
    old.ask(&["PING"]).await;
    proxy.refuse(true);
    Raw::open(&proxy).await.until_reset().await;
    assert_eq!(old.ask(&["PING"]).await, "+PONG\r\n");
    proxy.refuse(false);
    Raw::open(&proxy).await.ask(&["PING"]).await;
}

#[tokio::test]
async fn rules_are_for_those_they_name() {
    let (_servers, proxy) = proxied().await;
    let mut work = Raw::named(&proxy, "rf:7:work").await;
    let mut renew = Raw::open(&proxy).await;
    renew.ask(&["HELLO", "3", "SETNAME", "rf:7:renew"]).await;
    let (works, renews) = (Whose::lane("work"), Whose::lane("renew"));
    proxy.both(&renews, Flow::Hold);
    renew.send(&["PING"]).await;
    assert!(renew.is_silent().await);
    assert_eq!(work.ask(&["PING"]).await, "+PONG\r\n");
    proxy.both(&Whose::Named("rf:7:".into()), Flow::Pass);
    assert_eq!(renew.reply().await, "+PONG\r\n", "the last rule counts");
    proxy.cut(&works);
    work.until_reset().await;
    assert_eq!(renew.ask(&["PING"]).await, "+PONG\r\n");
    assert_eq!(proxy.counts(&works).replies, 2);
    assert_eq!(proxy.counts(&renews).replies, 3);
}

#[tokio::test]
async fn a_cut_comes_after_the_named_request_was_applied_and_before_its_reply() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::named(&proxy, "rf:7:work").await;
    let deed = Deed::Cut { reply_bytes: 0 };
    proxy.trap(
        Trap::new(Whose::lane("work"), deed)
            .command(&["incr", "key"])
            .nth(2),
    );
    raw.ask(&["INCR", "other"]).await;
    raw.ask(&["INCR", "key"]).await;
    assert_eq!(proxy.sprung(), 0);
    raw.send(&["INCR", "key"]).await;
    assert_eq!(raw.until_reset().await, b"");
    assert_eq!(proxy.sprung(), 1);
    assert_eq!(value_of(&servers, "key").await, Some(2));
    let mut again = Raw::named(&proxy, "rf:7:work").await;
    assert_eq!(
        again.ask(&["INCR", "key"]).await,
        ":3\r\n",
        "it springs once"
    );
}

#[tokio::test]
async fn a_cut_in_mid_reply_comes_after_as_many_bytes() {
    let (_servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    proxy.trap(Trap::new(Whose::All, Deed::Cut { reply_bytes: 5 }).nth(2));
    raw.send(&["ECHO", "first"]).await;
    raw.send(&["ECHO", "second"]).await;
    raw.send(&["ECHO", "third"]).await;
    assert_eq!(raw.until_reset().await, b"$5\r\nfirst\r\n$6\r\ns");
}

#[tokio::test]
async fn a_half_open_connection_is_closed_to_the_server_and_silent_to_the_client() {
    let (servers, proxy) = proxied().await;
    let mut now = Raw::named(&proxy, "rf:7:work").await;
    let mut trapped = Raw::named(&proxy, "rf:7:renew").await;
    proxy.trap(Trap::new(Whose::lane("renew"), Deed::HalfOpen));
    proxy.half_open(&Whose::lane("work"));
    trapped.send(&["INCR", "key"]).await;
    eventually("closed", async || {
        let list: String = servers.ask(0, &["CLIENT", "LIST"]).await;
        !list.contains("name=rf:")
    })
    .await;
    for raw in [&mut now, &mut trapped] {
        assert!(raw.is_silent().await);
        raw.send(&["INCR", "key"]).await;
        assert!(raw.is_silent().await);
    }
    assert_eq!(value_of(&servers, "key").await, Some(1));
    proxy.cut(&Whose::All);
    now.until_reset().await;
    trapped.until_reset().await;
}

#[tokio::test]
async fn a_lost_reply_leaves_the_connection_open_and_silent() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    proxy.trap(Trap::new(Whose::All, Deed::LoseReplies).command(&["INCR"]));
    raw.ask(&["PING"]).await;
    raw.send(&["INCR", "key"]).await;
    assert!(raw.is_silent().await);
    raw.send(&["INCR", "key"]).await;
    assert!(raw.is_silent().await);
    assert_eq!(value_of(&servers, "key").await, Some(2));
}

#[tokio::test]
async fn a_failover_cuts_what_there_is_and_leads_new_connections_elsewhere() {
    let servers = Servers::spawn(2).await;
    let proxy = Proxy::start(servers.servers[0].port()).await;
    let mut former = Raw::open(&proxy).await;
    former.ask(&["SET", "key", "first"]).await;
    proxy.point_at(servers.servers[1].port());
    former.until_reset().await;
    let mut later = Raw::open(&proxy).await;
    assert_eq!(later.ask(&["GET", "key"]).await, "$-1\r\n");
}

#[tokio::test]
async fn pushes_answer_no_request() {
    let (servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["HELLO", "3"]).await;
    raw.ask(&["CLIENT", "TRACKING", "ON"]).await;
    raw.ask(&["GET", "key"]).await;
    proxy.trap(Trap::new(Whose::All, Deed::Cut { reply_bytes: 3 }).command(&["ECHO"]));
    servers.ask::<()>(0, &["SET", "key", "value"]).await;
    assert!(raw.reply().await.starts_with(">2\r\n"));
    assert_eq!(proxy.counts(&Whose::All).replies, 3);
    raw.send(&["ECHO", "word"]).await;
    assert_eq!(raw.until_reset().await, b"$4\r");
}

#[tokio::test]
async fn it_ends_with_its_value() {
    let (_servers, proxy) = proxied().await;
    let mut raw = Raw::open(&proxy).await;
    raw.ask(&["PING"]).await;
    let port = proxy.port();
    drop(proxy);
    eventually("closed", async || {
        TcpStream::connect(("127.0.0.1", port)).await.is_err()
    })
    .await;
    let _ = raw.stream.read_to_end(&mut Vec::new()).await;
}
