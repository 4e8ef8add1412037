//! Semaphores and read-write locks, through clients: on embedded shards under simulated time, and on real servers.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use ringfence_client::{
    AcquireError, Client, Guard, Lock, LockKind, MultiLockError, NewShard, Owner, Preference,
    ReleaseAnswer, Reshape, TokioClock, blocking,
};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Servers, end_recovery, eventually};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(120);
/// For a resize, which waits for the end of a recovery period.
const RECOVERY: Duration = Duration::from_secs(6);

async fn embedded() -> Client {
    let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
    let builder = Client::builder().embedded(2).seed(7).clock(Arc::new(clock));
    builder.build().await.unwrap()
}

/// A server, and two clients of it.
async fn on_redis() -> (RedisServer, [Client; 2]) {
    let server = RedisServer::spawn().await.unwrap();
    let client = async || {
        let builder = Client::builder().redis([server.url()]);
        builder.servers_are_new(true).build().await.unwrap()
    };
    let clients = [client().await, client().await];
    (server, clients)
}

fn is_held(result: &Result<Guard, AcquireError>) -> bool {
    matches!(result, Err(AcquireError::Held { .. }))
}

/// Waits until `readers` are refused: those of a process come in until it learns that a writer waits.
async fn comes_no_more(readers: &Lock) {
    eventually("no reader goes before the writer", async || {
        is_held(&readers.try_acquire().await)
    })
    .await;
}

/// Waits until `key` has so many waiters.
async fn waiting(client: &Client, key: &str, waiters: usize) {
    let queued = async || {
        let found = client.lock(key).inspect().await.unwrap();
        found.waiters.len() == waiters
    };
    let all = async {
        while !queued().await {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(DEADLINE, all).await.expect("they wait");
}

/// Permits are taken by the tasks of one process, and by another process.
async fn permits_have_as_many_holders_as_there_are(one: &Client, other: &Client) {
    let [mine, theirs] = [one, other].map(|client| client.semaphore("permits", 3));
    let two = mine.permits(2).try_acquire().await.unwrap();
    let last = theirs.permit().try_acquire().await.unwrap();
    assert!(last.token() > two.token());
    for semaphore in [&mine, &theirs] {
        let refused = semaphore.permit().try_acquire().await;
        assert!(is_held(&refused), "{refused:?}");
    }
    let late = mine.permit().wait(SECOND / 2).acquire().await.unwrap_err();
    assert!(matches!(late, AcquireError::TimedOut { .. }), "{late}");
    waiting(one, "permits", 0).await;

    let wanted = mine.permits(2);
    let (waited, released) = tokio::join!(wanted.acquire(), async {
        waiting(one, "permits", 1).await;
        two.release().await
    });
    assert_eq!(released, ReleaseAnswer::Held);
    let waited = waited.unwrap();
    assert!(waited.is_held() && last.is_held());
    drop((waited, last));
    let all = mine.permits(3).wait(DEADLINE).acquire().await.unwrap();
    all.release().await;
}

/// A writer waits for all readers, and readers behind it wait for it.
async fn readers_share_and_a_writer_is_alone(one: &Client, other: &Client) {
    let [mine, theirs] = [one, other].map(|client| client.rw_lock("table"));
    let readers = [
        mine.read().try_acquire().await.unwrap(),
        mine.read().try_acquire().await.unwrap(),
        theirs.read().try_acquire().await.unwrap(),
    ];
    let refused = mine.write().try_acquire().await;
    assert!(is_held(&refused), "{refused:?}");

    let newest = readers[2].token();
    let (write, read) = (theirs.write(), mine.read());
    let write = async {
        let writer = write.acquire().await.unwrap();
        assert!(writer.token() > newest);
        let refused = mine.read().try_acquire().await;
        assert!(is_held(&refused), "{refused:?}");
        let token = writer.token();
        writer.release().await;
        token
    };
    let read = async {
        waiting(one, "table", 1).await;
        for readers in [theirs.read(), mine.read()] {
            comes_no_more(&readers).await;
        }
        read.acquire().await.unwrap()
    };
    let release = async {
        waiting(one, "table", 2).await;
        for reader in readers {
            assert_eq!(reader.release().await, ReleaseAnswer::Held);
        }
    };
    let (written, reader, ()) = tokio::join!(write, read, release);
    assert!(reader.token() > written);
    reader.release().await;
}

/// Each has its token; the last of them releases it.
async fn readers_of_a_process_have_one_lease_together(one: &Client, other: &Client) {
    let readers = one.rw_lock("together").read();
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(readers.try_acquire().await.unwrap());
    }
    assert!(guards.is_sorted_by_key(Guard::token));
    guards.dedup_by_key(|guard| guard.token());
    assert_eq!(guards.len(), 3);
    let found = readers.inspect().await.unwrap();
    assert_eq!((found.holder.is_some(), found.others.len()), (true, 0));

    let writer = other.rw_lock("together").write();
    let last = guards.pop().unwrap();
    for guard in guards {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
        assert!(is_held(&writer.try_acquire().await));
    }
    let token = last.token();
    assert!(last.is_held());
    assert_eq!(last.release().await, ReleaseAnswer::Held);
    let writer = writer.try_acquire().await.unwrap();
    assert!(writer.token() > token);
    writer.release().await;
}

/// Each has its own token, and what the shard knows of is the first of them.
async fn writers_of_a_process_hand_on_to_each_other(one: &Client, other: &Client) {
    let table = one.rw_lock("handed on");
    let first = table.write().acquire().await.unwrap();
    let mut tokens = vec![first.token()];
    let writers: Vec<_> = (0..3).map(|_| table.write()).collect();
    let mut writers: Vec<_> = writers
        .iter()
        .map(|write| Box::pin(write.acquire()))
        .collect();
    for writer in &mut writers {
        assert!(writer.as_mut().now_or_never().is_none());
    }
    assert_eq!(first.release().await, ReleaseAnswer::Held);
    let mut nonces = Vec::new();
    for writer in writers {
        let writer = writer.await.unwrap();
        let found = one.lock("handed on").inspect().await.unwrap();
        nonces.push(found.holder.expect("it has it").nonce);
        assert!(is_held(
            &other.rw_lock("handed on").read().try_acquire().await
        ));
        tokens.push(writer.token());
        assert_eq!(writer.release().await, ReleaseAnswer::Held);
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    nonces.dedup();
    assert_eq!(nonces.len(), 1);
    let reader = other.rw_lock("handed on").read().try_acquire().await;
    assert!(Some(&reader.unwrap().token()) > tokens.last());
}

/// They come after it, all together.
async fn readers_that_find_a_writer_waiting_come_behind_it(one: &Client, other: &Client) {
    let readers = one.rw_lock("behind").read();
    let first = readers.acquire().await.unwrap();
    let write = other.rw_lock("behind").write();
    let (writer, late, ()) = tokio::join!(
        async {
            let writer = write.acquire().await.unwrap();
            let token = writer.token();
            writer.release().await;
            token
        },
        async {
            waiting(one, "behind", 1).await;
            comes_no_more(&readers).await;
            tokio::join!(readers.acquire(), readers.acquire())
        },
        async {
            waiting(one, "behind", 2).await;
            first.release().await;
        }
    );
    for late in [late.0, late.1] {
        let late = late.unwrap();
        assert!(late.token() > writer);
        late.release().await;
    }
}

/// Those of its own process, and those of another one; other readers wait.
async fn preferred_readers_go_before_a_writer_that_waits(one: &Client, other: &Client) {
    let table = |client: &Client| client.rw_lock("readers first").prefer(Preference::Readers);
    let first = table(one).read().acquire().await.unwrap();
    let write = table(other).write();
    let (writer, ()) = tokio::join!(write.acquire(), async {
        waiting(one, "readers first", 1).await;
        comes_no_more(&one.rw_lock("readers first").read()).await;
        let mut readers = vec![first];
        for client in [one, one, other] {
            readers.push(table(client).read().try_acquire().await.unwrap());
        }
        let both = other.multi_lock(["readers first", "beside"]).read();
        assert!(both.try_acquire().await.is_err());
        let both = both.prefer(Preference::Readers).try_acquire().await;
        both.unwrap().release().await;
        for reader in readers {
            assert_eq!(reader.release().await, ReleaseAnswer::Held);
        }
    });
    writer.unwrap().release().await;
}

/// A writer that comes last is the next.
async fn a_preferred_writer_goes_before_readers_that_wait(one: &Client, other: &Client) {
    let table = |client: &Client| client.rw_lock("writers first").prefer(Preference::Writers);
    let first = table(one).write().acquire().await.unwrap();
    // With another lease it asks for itself, also in the process that has the lock.
    let write = table(one).write().lease(SECOND);
    let read = table(other).read();
    let read = async {
        let reader = read.acquire().await.unwrap();
        (reader.token(), reader.release().await).0
    };
    let write = async {
        waiting(one, "writers first", 1).await;
        let writer = write.acquire().await.unwrap();
        (writer.token(), writer.release().await).0
    };
    let release = async {
        waiting(one, "writers first", 2).await;
        first.release().await;
    };
    let (read, written, ()) = tokio::join!(read, write, release);
    assert!(written < read);
}

/// The first that asks is refused: a process needs no message to learn of its own writers.
#[tokio::test(start_paused = true)]
async fn no_reader_comes_while_a_writer_of_the_same_process_waits() {
    let client = embedded().await;
    let (table, mut writers) = (client.rw_lock("table"), JoinSet::new());
    let first = table.read().acquire().await.unwrap();
    let write = table.write();
    writers.spawn(async move { write.acquire().await });
    waiting(&client, "table", 1).await;
    let refused = table.read().try_acquire().await;
    assert!(is_held(&refused), "{refused:?}");
    first.release().await;
    let writer = writers.join_next().await.unwrap().unwrap();
    writer.unwrap().release().await;
}

/// A writer reads, too; a reader that would write has to release first.
async fn an_owner_enters_the_side_that_it_has(one: &Client, other: &Client) {
    let (table, owner) = (one.rw_lock("entered"), Owner::new());
    let (read, write) = (table.read().owner(&owner), table.write().owner(&owner));
    let first = read.acquire().await.unwrap();
    let again = read.acquire().await.unwrap();
    assert_eq!(again.token(), first.token());
    let refused = write.acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Upgrade), "{refused}");
    assert!(!refused.is_retryable());
    first.release().await;
    let writer_elsewhere = other.rw_lock("entered").write();
    assert!(is_held(&writer_elsewhere.try_acquire().await));
    again.release().await;

    let writer = write.acquire().await.unwrap();
    let reading = read.acquire().await.unwrap();
    assert_eq!(reading.token(), writer.token());
    writer.release().await;
    let reader_elsewhere = other.rw_lock("entered").read();
    assert!(is_held(&reader_elsewhere.try_acquire().await));
    reading.release().await;
    reader_elsewhere
        .try_acquire()
        .await
        .unwrap()
        .release()
        .await;
}

/// A greater number counts at once, for those that know it; a smaller one as permits come back.
async fn the_number_of_permits_is_changed_while_they_are_held(one: &Client, other: &Client) {
    let of = |client: &Client, number: u32| client.semaphore("changed", number).permit();
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(of(one, 2).try_acquire().await.unwrap());
    }
    assert!(is_held(&of(one, 2).try_acquire().await));
    for _ in 0..2 {
        held.push(of(other, 4).try_acquire().await.unwrap());
    }
    assert!(is_held(&of(other, 4).try_acquire().await));
    // Down to three.
    let (three, last) = (of(one, 3), held.pop().unwrap());
    let (waited, ()) = tokio::join!(three.acquire(), async {
        waiting(one, "changed", 1).await;
        last.release().await;
        assert!(
            is_held(&of(other, 3).try_acquire().await),
            "there are three"
        );
        held.pop().unwrap().release().await;
    });
    let waited = waited.unwrap();
    assert!(is_held(&of(one, 3).try_acquire().await));
    for guard in held.into_iter().chain([waited]) {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
}

/// It stays a reader, and a reader never becomes a writer.
async fn a_writer_becomes_a_reader(one: &Client, other: &Client) {
    let [mine, theirs] = [one, other].map(|client| client.rw_lock("report"));
    let writer = mine.write().try_acquire().await.unwrap();
    let token = writer.token();
    let read = theirs.read();
    let (reader, ()) = tokio::join!(read.acquire(), async {
        waiting(one, "report", 1).await;
        assert!(writer.downgrade());
    });
    let reader = reader.unwrap();
    assert!(!writer.downgrade() && !reader.downgrade());
    assert!(writer.is_held());
    assert_eq!(writer.token(), token);
    let refused = theirs.write().try_acquire().await;
    assert!(is_held(&refused), "{refused:?}");
    for guard in [writer, reader] {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    let free = theirs.write().try_acquire().await.unwrap();
    free.release().await;
}

/// The error names both kinds.
async fn a_key_is_of_one_kind_at_a_time(one: &Client, other: &Client) {
    let permit = one.semaphore("kind", 2).permit().acquire().await.unwrap();
    let refused = other.lock("kind").try_acquire().await.unwrap_err();
    let (asked, held) = match &refused {
        AcquireError::OtherKind { asked, held } => (*asked, *held),
        other => panic!("{other}"),
    };
    assert_eq!((asked, held), (LockKind::Mutex, LockKind::Semaphore));
    let text = refused.to_string();
    assert!(
        text.contains("semaphore") && text.contains("a lock"),
        "{text}"
    );
    assert!(!refused.is_retryable());
    let waited = other.rw_lock("kind").read().acquire().await.unwrap_err();
    assert!(matches!(waited, AcquireError::OtherKind { .. }), "{waited}");
    permit.release().await;
    other
        .lock("kind")
        .try_acquire()
        .await
        .unwrap()
        .release()
        .await;
}

/// Nobody waits for it any more.
async fn a_writer_that_gives_up_lets_readers_in(one: &Client, other: &Client) {
    let [mine, theirs] = [one, other].map(|client| client.rw_lock("given up"));
    let reader = mine.read().acquire().await.unwrap();
    let (write, read) = (theirs.write(), mine.read());
    let given_up = timeout(SECOND / 2, write.acquire());
    let (given_up, second) = tokio::join!(given_up, async {
        waiting(one, "given up", 1).await;
        read.acquire().await.unwrap()
    });
    given_up.unwrap_err();
    assert!(reader.is_held() && second.is_held());
    drop((reader, second));
    let writer = theirs.write().wait(DEADLINE).acquire().await.unwrap();
    writer.release().await;
}

/// Each of them learns of it.
async fn a_release_by_force_takes_the_shares_of_all(one: &Client, other: &Client) {
    let mut guards = Vec::new();
    for client in [one, other, one] {
        let permit = client.semaphore("forced", 3).permit();
        guards.push(permit.lease(6 * SECOND).acquire().await.unwrap());
    }
    let taken = one.lock("forced").force_release("a test").await.unwrap();
    let tokens = taken.iter().map(|holder| holder.token);
    assert!(tokens.eq(guards.iter().map(Guard::token)));
    for guard in &guards {
        timeout(DEADLINE, guard.lost()).await.unwrap();
    }
    let found = one.lock("forced").inspect().await.unwrap();
    assert_eq!((found.holder, found.others), (None, Vec::new()));
}

/// A test of each property on embedded shards, by one client, and one on a real server, by two.
macro_rules! everywhere {
    ($($property:ident),+ $(,)?) => {
        mod on_embedded_shards {
            $(#[tokio::test(start_paused = true)]
            async fn $property() {
                let client = super::embedded().await;
                super::$property(&client, &client).await;
            })+
        }
        mod on_a_real_server {
            $(#[tokio::test]
            async fn $property() {
                let (_server, [one, other]) = super::on_redis().await;
                super::$property(&one, &other).await;
            })+
        }
    };
}

everywhere! {
    permits_have_as_many_holders_as_there_are,
    readers_share_and_a_writer_is_alone,
    readers_of_a_process_have_one_lease_together,
    writers_of_a_process_hand_on_to_each_other,
    readers_that_find_a_writer_waiting_come_behind_it,
    preferred_readers_go_before_a_writer_that_waits,
    a_preferred_writer_goes_before_readers_that_wait,
    an_owner_enters_the_side_that_it_has,
    the_number_of_permits_is_changed_while_they_are_held,
    a_writer_becomes_a_reader,
    a_key_is_of_one_kind_at_a_time,
    a_writer_that_gives_up_lets_readers_in,
    a_release_by_force_takes_the_shares_of_all,
}

#[tokio::test(start_paused = true)]
async fn shares_are_renewed_and_end_with_a_fixed_hold() {
    let client = embedded().await;
    let semaphore = client.semaphore("renewed", 2);
    let kept = semaphore.permit().lease(SECOND).acquire().await.unwrap();
    let ends = semaphore
        .permit()
        .hold_for(5 * SECOND)
        .acquire()
        .await
        .unwrap();
    let waited = semaphore.permit().acquire().await.unwrap();
    assert!(!ends.is_held() && kept.is_held());
    sleep(10 * SECOND).await;
    assert!(kept.is_held() && waited.is_held());
}

#[tokio::test(start_paused = true)]
async fn no_semaphore_gives_no_permit_or_more_than_it_has() {
    let client = embedded().await;
    for (count, capacity) in [(0, 3), (4, 3), (1, 0), (1, (1 << 30) + 1)] {
        let permits = client.semaphore("key", capacity).permits(count);
        let refused = permits.acquire().await.unwrap_err();
        assert!(matches!(refused, AcquireError::Permits { .. }), "{refused}");
    }
}

/// As many as there are, at both shards together.
#[tokio::test(start_paused = true)]
async fn a_resize_loses_no_share_and_grants_none_too_many() {
    let client = embedded().await;
    let semaphore = |number: u32| client.semaphore(format!("key/{number}"), 3);
    let mut guards = Vec::new();
    for number in 0..40 {
        guards.push(semaphore(number).permits(2).acquire().await.unwrap());
    }
    let shape = Reshape::new().add_shard(NewShard::embedded());
    let ring = client.ring();
    let resize = ring.reshape(shape).await.unwrap();
    let mut resize = std::pin::pin!(resize.run());
    let resized = loop {
        for number in 0..40 {
            let Ok(third) = semaphore(number).permit().wait(SECOND).acquire().await else {
                continue;
            };
            let fourth = semaphore(number).permit().try_acquire().await;
            assert!(fourth.is_err(), "{number}: {fourth:?}");
            third.release().await;
        }
        if let Ok(resized) = timeout(SECOND, &mut resize).await {
            break resized.unwrap();
        }
    };
    assert!(resized.slots_moved > 0);
    assert!(guards.iter().all(Guard::is_held));
    for number in 0..40 {
        assert!(semaphore(number).permits(2).try_acquire().await.is_err());
        let third = semaphore(number).permit().try_acquire().await.unwrap();
        third.release().await;
    }
}

/// A third server joins two, of which one dies on the way, and comes back empty.
#[tokio::test]
#[ignore = "long: a resize and a recovery period"]
async fn a_resize_amid_which_a_server_dies_loses_no_share_and_grants_none_too_many() {
    let Servers { mut servers } = Servers::spawn(3).await;
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let client = async || {
        let builder = Client::builder().redis(&urls[..2]).max_lease(RECOVERY);
        builder.servers_are_new(true).build().await.unwrap()
    };
    let (one, other) = (client().await, client().await);
    let permits = |number: u32, count| one.semaphore(format!("permits/{number}"), 3).permits(count);
    let table = |client: &Client, number: u32| client.rw_lock(format!("table/{number}"));
    let mut guards = Vec::new();
    for number in 0..20 {
        guards.push(permits(number, 2).acquire().await.unwrap());
        for client in [&one, &other] {
            guards.push(table(client, number).read().acquire().await.unwrap());
        }
    }
    let newest = guards
        .chunks(3)
        .map(|of_number| of_number[1..].iter().map(Guard::token).max());
    let newest: Vec<_> = newest.collect();

    let shape = Reshape::new().add_shard(NewShard::redis(&urls[2]));
    let resize = one.ring().reshape(shape).await.unwrap();
    let mut progress = resize.progress();
    let dies = async {
        progress.wait_for(|now| now.migrating > 0).await.unwrap();
        servers[1].kill();
        servers[1].restart().await.unwrap();
    };
    let asks = async {
        for number in (0..20).cycle() {
            permits(number, 2).try_acquire().await.unwrap_err();
            table(&other, number)
                .write()
                .try_acquire()
                .await
                .unwrap_err();
        }
    };
    let resized = async { tokio::join!(resize.run(), dies).0 };
    let resized = tokio::select! {
        resized = resized => resized.unwrap(),
        () = asks => unreachable!("it asks until then"),
    };
    assert!(resized.slots_moved > 0);
    assert!(guards.iter().all(Guard::is_held));
    for number in 0..20 {
        permits(number, 2).try_acquire().await.unwrap_err();
        let third = permits(number, 1).wait(DEADLINE).acquire().await;
        third.unwrap().release().await;
    }
    for guard in guards {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    for (number, newest) in (0..).zip(newest) {
        let writer = table(&other, number).write().wait(DEADLINE);
        let writer = writer.acquire().await.unwrap();
        assert!(Some(writer.token()) > newest);
        writer.release().await;
    }
}

/// The server forgets them, and their holders put them back.
#[tokio::test]
async fn shares_outlast_a_server_that_comes_back_empty() {
    let (mut server, [one, other]) = on_redis().await;
    let mut readers = Vec::new();
    for client in [&one, &one, &other] {
        readers.push(client.rw_lock("table").read().acquire().await.unwrap());
    }
    let permits = one
        .semaphore("permits", 2)
        .permits(2)
        .acquire()
        .await
        .unwrap();
    server.kill();
    server.restart().await.unwrap();

    let write = other.rw_lock("table").write().wait(DEADLINE);
    let mut writer = JoinSet::new();
    writer.spawn(async move { write.acquire().await });
    eventually("the readers are there again", async || {
        let found = one.lock("table").inspect().await;
        found.is_ok_and(|found| found.others.len() == 1)
    })
    .await;
    eventually("the permits are there again", async || {
        let found = one.lock("permits").inspect().await;
        found.is_ok_and(|found| found.holder.is_some())
    })
    .await;
    end_recovery(&server.url()).await;
    eventually("there is no grace any more", async || {
        let free = one.lock("free").try_acquire().await;
        free.is_ok()
    })
    .await;
    assert!(writer.try_join_next().is_none());
    assert!(permits.is_held() && readers.iter().all(Guard::is_held));
    let third = other.semaphore("permits", 2).permit().try_acquire().await;
    assert!(is_held(&third), "{third:?}");
    let newest = readers.iter().map(Guard::token).max().unwrap();
    for reader in readers {
        assert_eq!(reader.release().await, ReleaseAnswer::Held);
    }
    let writer = writer.join_next().await.unwrap().unwrap();
    assert!(writer.unwrap().token() > newest);
}

#[test]
fn callers_without_tokio_have_them_too() {
    let client = blocking::Client::build(blocking::Client::builder().embedded(1)).unwrap();
    let semaphore = client.semaphore("permits", 2);
    let both = semaphore.permits(2).acquire().unwrap();
    semaphore.permit().try_acquire().unwrap_err();
    assert_eq!(both.release(), ReleaseAnswer::Held);
    let table = client.rw_lock("table");
    let writer = table.write().acquire().unwrap();
    table.read().try_acquire().unwrap_err();
    assert!(writer.downgrade());
    let reader = table.read().acquire().unwrap();
    table.write().try_acquire().unwrap_err();
    drop((writer, reader));
    let keys = || client.multi_lock(["a", "b"]);
    let readers = keys().read().prefer(Preference::Readers).acquire().unwrap();
    keys().write().try_acquire().unwrap_err();
    let permits = client.multi_lock(["c"]).permits(2, 2).acquire().unwrap();
    client.semaphore("c", 2).permit().try_acquire().unwrap_err();
    drop((readers, permits));
    client.close();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_replicas_refuses_shares() {
    let builder = Client::builder().embedded(3).seed(7);
    let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
    let builder = builder.clock(Arc::new(clock));
    let builder = builder.replicas("ledger", 3);
    let client = builder.build().await.unwrap();
    let permit = client.semaphore("key", 2).permit().namespace("ledger");
    let refused = permit.acquire().await.unwrap_err();
    assert!(
        matches!(refused, AcquireError::Replicated { .. }),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn several_keys_are_held_as_shares_or_not_at_all() {
    let client = embedded().await;
    let keys = || client.multi_lock(["a", "b", "c"]);
    let readers = [
        keys().read().try_acquire().await.unwrap(),
        keys().read().try_acquire().await.unwrap(),
    ];
    let refused = keys().write().try_acquire().await.unwrap_err();
    let MultiLockError::NotAcquired { error, .. } = &refused else {
        panic!("{refused}")
    };
    assert!(matches!(error, AcquireError::Held { .. }), "{refused}");
    for reader in readers {
        assert_eq!(reader.release().await, ReleaseAnswer::Held);
    }
    let writer = keys().write().wait(SECOND).acquire().await.unwrap();
    assert!(client.rw_lock("b").read().try_acquire().await.is_err());
    writer.release().await;

    let two = keys().permits(2, 3).wait(SECOND).acquire().await.unwrap();
    let too_many = keys().permits(2, 3).try_acquire().await;
    assert!(too_many.is_err());
    let one = keys().permits(1, 3).try_acquire().await.unwrap();
    assert!(two.is_held() && one.is_held());
    client.close().await;
}
