//! A server that is not the one it says, or to which we are nobody, is not spoken to.

use std::sync::Arc;

use ringfence_coordinator::{
    ids::ClientId,
    name::KeyPrefix,
    random::Random,
    shard::{
        ServerOptions, Shard, ShardError,
        redis::{Address, RedisOptions, RedisShard},
    },
    spawn::RedisServer,
};
use ringfence_test_support::{
    Secured, Sentinel,
    database::{mariadb::MariaDb, pgbouncer::PgBouncer, postgresql::PostgreSql},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Connects to `url`.
pub(crate) async fn connect(url: &str) -> Result<(), ShardError> {
    let options = RedisOptions::new(url.parse().unwrap(), ClientId(7));
    let link = RedisShard::new(options).connect_control(None).await;
    link.map(drop)
}

/// Why the server at `url`, which answers, cannot be used; named once.
pub(crate) async fn unusable(url: &str) -> String {
    let address = url.parse::<Address>().unwrap();
    match connect(url).await {
        Err(ShardError::Unusable { reason }) => {
            assert_eq!(reason.matches(address.as_str()).count(), 1, "{reason}");
            let why = reason.strip_prefix(&format!("{address} is unusable: "));
            why.unwrap_or_else(|| panic!("{reason}")).to_owned()
        }
        other => panic!("{url}: {other:?}"),
    }
}

/// Answers each received piece as `answer` says, and closes the connection if the answer is empty.
async fn listener(answer: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "it ends with its runtime")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                let said = answer(&bytes[..length]);
                if said.is_empty() || stream.write_all(&said).await.is_err() {
                    break;
                }
            }
        }
    });
    url
}

#[tokio::test]
async fn only_a_client_that_shows_and_sees_the_right_certificate_connects() {
    let (secured, stranger) = (Secured::default(), Secured::default());
    let (server, port) = secured.spawn(RedisServer::builder()).await;
    connect(&secured.url(port, true)).await.unwrap();

    let reason = unusable(&stranger.url(port, true)).await;
    assert!(reason.contains("certificate"), "{reason}");
    assert!(connect(&secured.url(port, false)).await.is_err());
    // Certified for 127.0.0.1, and for no name.
    let other_name = secured.url(port, true).replace("127.0.0.1", "localhost");
    let reason = unusable(&other_name).await;
    assert!(reason.contains("certificate"), "{reason}");
    let reason = unusable(&secured.url(server.port(), true)).await;
    assert_eq!(reason, "the server does not speak TLS: write redis://");
    let plain = format!("redis://127.0.0.1:{port}");
    let reason = unusable(&plain).await;
    assert_eq!(reason, "the server speaks TLS: write rediss://");
}

/// Makes the tables on the server at `url`.
async fn prepare(url: &str) -> Result<(), ShardError> {
    let address = url.parse().unwrap();
    let options = ServerOptions::new(address, ClientId(7), KeyPrefix::default());
    options.prepare().await
}

/// By TLS with both certificates, and by nothing else. `names` are of the parameters: whether TLS is used, the
/// authorities, the certificate and its key. `plain` is the address of a server without TLS.
async fn only_by_tls(secured: &Secured, url: &str, plain: &str, mode: &str, names: [&str; 3]) {
    let stranger = Secured::default();
    let known = |files: [&Secured; 2], url: &str, count: usize| {
        let files = parameters(files, &names[..count]);
        format!("{url}?{mode}{files}")
    };
    let both = [secured; 2];
    prepare(&known(both, url, 3)).await.unwrap();
    let other_name = url.replace("127.0.0.1", "localhost");
    for (refused, why) in [
        (known([&stranger; 2], url, 3), "certificate"),
        (known(both, &other_name, 3), "certificate"),
        (known(both, url, 1), ""),
        (url.to_owned(), ""),
        (known(both, plain, 3), ""),
        (known([&stranger, secured], url, 3), "certificate"),
        (known([secured, &stranger], url, 3), ""),
    ] {
        match prepare(&refused).await {
            Err(ShardError::Unusable { reason }) => assert!(reason.contains(why), "{reason}"),
            other => panic!("{refused}: {other:?}"),
        }
    }
}

/// The parameters `names`: of the authorities, of the client's certificate and of its key.
fn parameters([ca, client]: [&Secured; 2], names: &[&str]) -> String {
    let client = ["client.pem", "client.key"].map(|name| client.path(name));
    let files = [ca.path("ca.pem")].into_iter().chain(client);
    let files = names.iter().zip(files);
    files
        .map(|(name, path)| format!("&{name}={path}"))
        .collect()
}

#[tokio::test]
async fn postgresql_is_reached_by_tls_and_by_nothing_else() {
    let secured = Secured::default();
    let server = PostgreSql::spawn_secured(&secured).await;
    let plain = PostgreSql::spawn_with(&[("fsync", "off")]).await;
    let [url, plain] = [server.port(), plain.port()]
        .map(|port| format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    for names in [["sslrootcert", "sslcert", "sslkey"], ["ca", "cert", "key"]] {
        only_by_tls(&secured, &url, &plain, "sslmode=verify-full", names).await;
    }
    // Whoever answers is trusted, if it encrypts; the server still knows us by our certificate.
    let stranger = Secured::default();
    let require = |url: &str, of: &Secured| {
        let [cert, key] = ["client.pem", "client.key"].map(|name| of.path(name));
        format!("{url}?sslmode=require&cert={cert}&key={key}")
    };
    prepare(&require(&url, &secured)).await.unwrap();
    let other_name = url.replace("127.0.0.1", "localhost");
    prepare(&require(&other_name, &secured)).await.unwrap();
    for refused in [require(&url, &stranger), require(&plain, &secured)] {
        let unusable = prepare(&refused).await;
        assert!(
            matches!(unusable, Err(ShardError::Unusable { .. })),
            "{unusable:?}"
        );
    }
}

/// The URL's parameters are for both.
#[tokio::test]
async fn a_pooler_and_the_server_behind_it_are_reached_by_tls() {
    let (secured, stranger) = (Secured::default(), Secured::default());
    let server = PostgreSql::spawn_secured(&secured).await;
    let pooler = PgBouncer::spawn_secured(&server, "postgres", 2, &secured).await;
    let (port, direct) = (pooler.port(), server.port());
    let url = format!(
        "postgres://postgres@127.0.0.1:{port}/postgres?direct=127.0.0.1:{direct}&sslmode=verify-full"
    );
    let connect = async |files: &Secured| {
        let files = parameters([files; 2], &["sslrootcert", "sslcert", "sslkey"]);
        let address = format!("{url}{files}").parse().unwrap();
        let options = ServerOptions::new(address, ClientId(7), KeyPrefix::default());
        let shard = options.shard(&Arc::new(Random::from_os()));
        let prepared = options.prepare().await;
        let listens = shard.listen(ClientId(7)).await.map(drop);
        [
            prepared,
            listens,
            shard.connect_control(None).await.map(drop),
        ]
    };
    for done in connect(&secured).await {
        done.unwrap();
    }
    for refused in connect(&stranger).await {
        match refused {
            Err(ShardError::Unusable { reason }) => {
                assert!(reason.contains("certificate"), "{reason}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn mariadb_is_reached_by_tls_and_by_nothing_else() {
    let secured = Secured::default();
    let server = MariaDb::spawn_secured(&secured).await;
    let plain = MariaDb::spawn().await;
    let [url, plain] =
        [server.port(), plain.port()].map(|port| format!("mysql://app@127.0.0.1:{port}/test"));
    for names in [["ssl-ca", "ssl-cert", "ssl-key"], ["ca", "cert", "key"]] {
        only_by_tls(&secured, &url, &plain, "ssl-mode=VERIFY_IDENTITY", names).await;
    }
}

#[tokio::test]
async fn a_server_of_another_protocol_is_named() {
    let http = |_: &[u8]| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let url = listener(http).await;
    assert_eq!(unusable(&url).await, "an HTTP server answers, not Redis");

    // As a real one: any other start-up packet ends the connection without a word.
    let postgresql = |sent: &[u8]| match sent {
        [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f] => b"N".to_vec(),
        _ => Vec::new(),
    };
    let url = listener(postgresql).await;
    let reason = unusable(&url).await;
    assert_eq!(reason, "a PostgreSQL server answers, not Redis");

    let ssh = |_: &[u8]| b"SSH-2.0-OpenSSH_9.2\r\n".to_vec();
    let reason = unusable(&listener(ssh).await).await;
    assert_eq!(
        reason,
        r"the answer to PING is not Redis's: SSH-2.0-OpenSSH_9.2\r\n"
    );
}

/// A server that ends in the middle of a handshake speaks no other protocol.
#[tokio::test]
async fn a_server_that_says_nothing_is_unavailable() {
    let url = listener(|_| Vec::new()).await;
    let failed = connect(&url).await;
    assert!(
        matches!(failed, Err(ShardError::Unreachable { .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn an_old_server_is_named() {
    for unknown in [
        "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
        "-ERR unknown command 'HELLO'\r\n",
    ] {
        let url = listener(move |_| unknown.repeat(4).into_bytes()).await;
        let reason = unusable(&url).await;
        assert!(reason.contains("Redis 6.2 or later is needed"), "{reason}");
    }
    // As a real one answers.
    let answer = |command: &str| {
        let words: Vec<_> = command.split("\r\n").skip(2).step_by(2).collect();
        let info = "redis_version:6.0.20\r\nredis_mode:standalone\r\nrole:master\r\n";
        match words[..] {
            ["INFO", _] => format!("${}\r\n{info}\r\n", info.len()),
            ["INFO", ..] => "-ERR syntax error\r\n".to_owned(),
            ["CLIENT", "ID"] => ":7\r\n".to_owned(),
            ["FCALL" | "FUNCTION", ..] => format!("-ERR unknown command `{}`\r\n", words[0]),
            _ => "+OK\r\n".to_owned(),
        }
    };
    let old = move |sent: &[u8]| {
        let sent = String::from_utf8_lossy(sent);
        let commands = sent.split('*').skip(1);
        commands.map(answer).collect::<String>().into_bytes()
    };
    let reason = unusable(&listener(old).await).await;
    let expected = "redis_version is \"6.0.20\": 6.2 or later is needed";
    assert_eq!(reason, expected);
}

#[tokio::test]
async fn a_command_that_a_server_lacks_is_named() {
    let lacks = |reason: &str, command: &str| {
        let lacks = format!("it does not know the command {command}: ");
        assert!(reason.starts_with(&lacks), "{reason}");
    };
    // The last of its commands is named.
    for commands in [
        &["HELLO"][..],
        &["CLIENT"],
        &["SCRIPT", "FUNCTION"],
        &["EVALSHA", "FCALL"],
    ] {
        let server = RedisServer::builder();
        let server = commands
            .iter()
            .fold(server, |server, command| server.without(command));
        let command = commands[commands.len() - 1];
        let server = server.spawn().await.unwrap();
        let reason = unusable(&server.url()).await;
        lacks(&reason, command);
    }
    // A server of ours is asked for INFO when it starts.
    let no_info = |sent: &[u8]| {
        let commands = String::from_utf8_lossy(sent);
        let commands = commands.split('*').skip(1);
        let answers = commands.map(|command| match command.contains("INFO") {
            true => "-ERR unknown command 'INFO', with args beginning with: 'server' \r\n",
            false => "+OK\r\n",
        });
        answers.collect::<String>().into_bytes()
    };
    lacks(&unusable(&listener(no_info).await).await, "INFO");
}

#[tokio::test]
async fn a_sentinel_is_named() {
    let sentinel = Sentinel::spawn("", "").await;
    let reason = unusable(&format!("redis://127.0.0.1:{}", sentinel.port())).await;
    assert!(reason.contains("it is a Sentinel"), "{reason}");
}
