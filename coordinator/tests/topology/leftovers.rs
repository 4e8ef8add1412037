//! What a founding that did not come to its end leaves behind is finished or taken back, and what
//! was in use never is.

use ringfence_coordinator::{
    shard::redis::RedisOptions,
    topology::{TopologyError, server::Step},
};

use super::servers::{POINTER, RECORD, Servers, hopeless, join, join_with, options};

const NOBODYS: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn a_founding_whose_process_ended_is_finished_by_the_next() {
    let servers = Servers::spawn(3).await;
    servers
        .found_until(|step| matches!(step, Step::Joined { .. }))
        .await;
    let claimed = servers
        .pointers()
        .await
        .into_iter()
        .flatten()
        .next()
        .unwrap();

    let joined = join(servers.seeds()).await.unwrap();
    assert!(!joined.founded_now);
    assert_eq!(joined.topology.id, claimed);
    assert_eq!(servers.pointers().await, vec![Some(claimed); 3]);
}

#[tokio::test]
async fn a_founding_is_finished_by_a_process_that_knows_one_member_only() {
    let servers = Servers::spawn(3).await;
    servers
        .found_until(|step| matches!(step, Step::Joined { .. }))
        .await;
    let joined_first = servers
        .pointers()
        .await
        .iter()
        .position(Option::is_some)
        .unwrap();
    let joined = join(vec![seed(&servers, joined_first)]).await.unwrap();
    assert_eq!(joined.topology.shards.len(), 3);
}

#[tokio::test]
async fn a_founding_that_cannot_be_finished_is_taken_back() {
    let mut servers = Servers::spawn(3).await;
    servers
        .found_until(|step| matches!(step, Step::Joined { .. }))
        .await;
    let pointers = servers.pointers().await;
    let claimed = pointers.iter().flatten().next().unwrap().clone();
    let not_joined = pointers.iter().position(Option::is_none).unwrap();
    servers.0[not_joined].restart().await.unwrap();

    let joined = join(servers.seeds()).await.unwrap();
    assert!(joined.founded_now);
    assert_ne!(joined.topology.id, claimed);
    assert_eq!(
        servers.pointers().await,
        vec![Some(joined.topology.id.clone()); 3]
    );
}

fn seed(servers: &Servers, place: usize) -> RedisOptions {
    options(&servers.0[place].url())
}

#[tokio::test]
async fn of_foundings_that_overlap_one_comes_into_use() {
    let servers = Servers::spawn(3).await;
    let by_run_id = servers.by_run_id().await;
    let list = |indices: [usize; 2]| {
        indices
            .map(|index| seed(&servers, by_run_id[index]))
            .to_vec()
    };

    // The last two are claimed at their first; then comes somebody with a list of the first two.
    Servers::end_at(list([1, 2]), |step| matches!(step, Step::Claimed { .. })).await;
    let claimed = servers.pointers().await[by_run_id[1]].clone().unwrap();
    let joined = join(list([0, 1])).await.unwrap();
    assert_eq!(
        joined.topology.id, claimed,
        "it was there first, and could be finished"
    );
    assert_eq!(servers.pointers().await[by_run_id[0]], None);
}

#[tokio::test]
async fn a_founding_that_meets_another_gives_way() {
    let servers = Servers::spawn(3).await;
    let by_run_id = servers.by_run_id().await;
    let list = |indices: [usize; 2]| {
        indices
            .map(|index| seed(&servers, by_run_id[index]))
            .to_vec()
    };

    // The first two are claimed at their first; the last two are founded; the former cannot be.
    Servers::end_at(list([0, 1]), |step| matches!(step, Step::Claimed { .. })).await;
    let upper = join(list([1, 2])).await.unwrap();
    assert!(upper.founded_now);
    let joined = join(list([0, 1])).await.unwrap();
    assert_eq!(joined.topology, upper.topology);
    let first = by_run_id[0];
    assert_eq!(servers.pointers().await[first], None);
    assert_eq!(servers.get(first, RECORD).await, None);
}

#[tokio::test]
async fn a_pointer_whose_home_has_no_record_is_taken_away() {
    let servers = Servers::spawn(3).await;
    let pointer = format!("{NOBODYS} {}", servers.addresses()[0]);
    servers.set(1, POINTER, &pointer).await;
    let joined = join(servers.seeds()).await.unwrap();
    assert!(joined.founded_now);
    assert_eq!(
        servers.pointers().await,
        vec![Some(joined.topology.id.clone()); 3]
    );
}

#[tokio::test]
async fn a_pointer_stays_while_its_home_is_silent() {
    let servers = Servers::spawn(3).await;
    let pointer = format!("{NOBODYS} {}", servers.addresses()[0]);
    servers.set(1, POINTER, &pointer).await;
    let seeds = servers.seeds();
    servers.0[0].stop();
    let error = join_with(vec![seeds[1].clone(), seeds[2].clone()], hopeless())
        .await
        .unwrap_err();
    assert!(
        error.is_retryable() && error.to_string().contains(seeds[0].address.as_str()),
        "{error}"
    );
    assert_eq!(servers.get(1, POINTER).await, Some(pointer));
}

#[tokio::test]
async fn a_pointer_stays_while_a_seed_is_silent() {
    let servers = Servers::spawn(3).await;
    let pointer = format!("{NOBODYS} {}", servers.addresses()[0]);
    servers.set(1, POINTER, &pointer).await;
    let seeds = servers.seeds();
    servers.0[2].stop();
    let error = join_with(seeds.clone(), hopeless()).await.unwrap_err();
    assert!(
        error.is_retryable() && error.to_string().contains(seeds[2].address.as_str()),
        "{error}"
    );
    assert_eq!(servers.get(1, POINTER).await, Some(pointer));
}

/// Gives the server at `place` a copy of a topology called [`NOBODYS`].
async fn copy_to(servers: &Servers, place: usize) {
    let other = Servers::spawn(1).await;
    let mut copied = (*other.found().await.topology).clone();
    copied.id = NOBODYS.into();
    servers.copy_to(place, &copied).await;
}

#[tokio::test]
async fn pointers_stay_where_one_member_has_a_copy() {
    let servers = Servers::spawn(3).await;
    let pointer = format!("{NOBODYS} {}", servers.addresses()[0]);
    servers.set(1, POINTER, &pointer).await;
    servers.set(2, POINTER, &pointer).await;
    copy_to(&servers, 2).await;
    // Its members are gone, and nobody says that it is for good.
    let joined = join(servers.seeds()).await.unwrap();
    assert!(!joined.founded_now && joined.topology.id == NOBODYS);
    assert!(joined.warnings[0].contains("--attest-dead"));
    assert_eq!(servers.get(1, POINTER).await.as_ref(), Some(&pointer));
    assert_eq!(servers.get(2, POINTER).await.as_ref(), Some(&pointer));
    assert_eq!(servers.pointers().await[0], None);
}

#[tokio::test]
async fn pointers_stay_where_one_member_is_armed() {
    let servers = Servers::spawn(3).await;
    let pointer = format!("{NOBODYS} {}", servers.addresses()[0]);
    servers.set(1, POINTER, &pointer).await;
    servers.set(2, POINTER, &pointer).await;
    let key = servers.key_of_life(2, "state").await;
    let arm = redis::Cmd::hset(&key, "arm", 7);
    arm.exec_async(&mut servers.raw(2).await).await.unwrap();
    let error = join(servers.seeds()).await.unwrap_err();
    assert!(matches!(error, TopologyError::Lost(_)), "{error}");
    assert!(
        error.to_string().contains(&servers.addresses()[2]),
        "{error}"
    );
    assert_eq!(servers.get(1, POINTER).await.as_ref(), Some(&pointer));
    assert_eq!(servers.get(2, POINTER).await.as_ref(), Some(&pointer));
}

#[tokio::test]
async fn a_member_that_lost_its_pointer_alone_founds_nothing() {
    let servers = Servers::spawn(2).await;
    copy_to(&servers, 1).await;
    // The home that the copy names is none of these, and gone.
    let joined = join(servers.seeds()).await.unwrap();
    assert!(!joined.founded_now && joined.topology.id == NOBODYS);
    assert_eq!(servers.pointers().await, [None, None]);
}

#[tokio::test]
async fn a_claim_of_an_earlier_life_is_given_up_if_nobody_used_it() {
    let mut servers = Servers::spawn_saving(3).await;
    servers
        .found_until(|step| matches!(step, Step::Joined { .. }))
        .await;
    let mut records = Vec::new();
    for place in 0..3 {
        records.push(servers.get(place, RECORD).await);
    }
    let home = records.iter().position(Option::is_some).unwrap();
    servers.0[home].restart().await.unwrap();
    assert_eq!(servers.get(home, RECORD).await, records[home]);

    let joined = join(servers.seeds()).await.unwrap();
    assert!(joined.founded_now);
    assert_eq!(
        servers.pointers().await,
        vec![Some(joined.topology.id.clone()); 3]
    );
}

#[tokio::test]
async fn a_claim_of_an_earlier_life_stays_while_a_member_is_silent() {
    let mut servers = Servers::spawn_saving(3).await;
    servers
        .found_until(|step| matches!(step, Step::Claimed { .. }))
        .await;
    let home = servers
        .pointers()
        .await
        .iter()
        .position(Option::is_some)
        .unwrap();
    servers.0[home].restart().await.unwrap();
    servers.0[servers.others(home)[0]].stop();
    let seed = servers.seeds().remove(home);
    let error = join_with(vec![seed], hopeless()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(servers.get(home, RECORD).await.is_some());
}

#[tokio::test]
async fn a_claim_of_an_earlier_life_that_somebody_used_is_recovered_from_a_copy() {
    let mut servers = Servers::spawn_saving(3).await;
    servers
        .found_until(|step| matches!(step, Step::Claimed { .. }))
        .await;
    let home = servers
        .pointers()
        .await
        .iter()
        .position(Option::is_some)
        .unwrap();
    let claimed = servers.get(home, RECORD).await.unwrap();
    let topology = join(servers.seeds()).await.unwrap().topology;

    // The home forgets all that came after the claim, as one that saves now and then does.
    servers.set(home, RECORD, &claimed).await;
    servers.0[home].restart().await.unwrap();
    let joined = join(servers.seeds()).await.unwrap();
    assert!(!joined.founded_now);
    assert_eq!(joined.topology.id, topology.id);
    assert!(joined.topology.incarnation > topology.incarnation);
    assert!(joined.topology.version > topology.version);
}
