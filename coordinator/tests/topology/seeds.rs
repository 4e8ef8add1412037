//! The addresses of a list name the servers to ask. The topology decides on the members.

use ringfence_coordinator::topology::{TopologyError, server::Founding};

use super::servers::{
    POINTER, RECORD, Servers, founding, hopeless, join, join_with, members, options, successor,
};

#[tokio::test]
async fn a_subset_of_the_seeds_gives_the_whole_membership() {
    let servers = Servers::spawn(3).await;
    let topology = servers.found().await.topology;
    for seed in servers.seeds() {
        let joined = join(vec![seed]).await.unwrap();
        assert_eq!(joined.topology, topology);
        assert_eq!(members(&joined.topology), servers.addresses());
    }
    // Nothing was lost meanwhile.
    assert_eq!(servers.pointers().await, vec![Some(topology.id.clone()); 3]);
    assert_eq!(join(servers.seeds()).await.unwrap().topology, topology);
}

#[tokio::test]
async fn a_silent_seed_is_a_warning_once_there_is_a_topology() {
    let servers = Servers::spawn(3).await;
    let topology = servers.found().await.topology;
    let seeds = servers.seeds();
    let silent = servers.others(servers.place(&topology.home.address))[0];
    servers.0[silent].stop();

    let joined = join(seeds.clone()).await.unwrap();
    assert_eq!(joined.topology, topology);
    let address = seeds[silent].address.as_str();
    let told = joined
        .warnings
        .iter()
        .find(|warning| warning.starts_with(address));
    assert!(
        told.is_some_and(|warning| warning.contains("does not answer")),
        "{:?}",
        joined.warnings
    );
}

#[tokio::test]
async fn a_seed_that_is_no_member_is_a_warning_and_stays_as_it_is() {
    let servers = Servers::spawn(3).await;
    let topology = join(servers.seeds()[..2].to_vec()).await.unwrap().topology;
    let joined = join(servers.seeds()).await.unwrap();
    assert_eq!(joined.topology, topology);
    let address = &servers.addresses()[2];
    assert!(
        joined
            .warnings
            .iter()
            .any(|warning| warning.starts_with(address)),
        "{:?}",
        joined.warnings
    );
    assert_eq!(servers.pointers().await[2], None);
}

#[tokio::test]
async fn a_home_without_append_only_file_is_a_warning() {
    let told = async |servers: Servers| {
        let joined = join(servers.seeds()).await.unwrap();
        joined
            .warnings
            .iter()
            .any(|warning| warning.contains("append-only"))
    };
    assert!(told(Servers::spawn(1).await).await);
    assert!(!told(Servers::spawn_saving(1).await).await);
}

#[tokio::test]
async fn two_names_of_one_server_are_an_error_that_names_both() {
    let servers = Servers::spawn(2).await;
    let mut seeds = servers.seeds();
    seeds.push(options(
        &servers.0[0].url().replace("127.0.0.1", "localhost"),
    ));
    let error = join(seeds.clone()).await.unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
    for named in [&seeds[0], &seeds[2]] {
        assert!(
            error.to_string().contains(named.address.as_str()),
            "{error}"
        );
    }
    assert_eq!(servers.pointers().await, [None, None]);

    // Nor is it different once there is a topology, or for a home of its own.
    servers.found().await;
    assert!(matches!(
        join(seeds.clone()).await,
        Err(TopologyError::Seeds(_))
    ));
    let home = Some(seeds.pop().unwrap().address.into());
    let joined = join_with(seeds, Founding { home, ..founding() }).await;
    assert!(matches!(joined, Err(TopologyError::Seeds(_))), "{joined:?}");
}

#[tokio::test]
async fn one_name_given_twice_is_an_error() {
    let servers = Servers::spawn(1).await;
    let seeds = [servers.seeds(), servers.seeds()].concat();
    let error = join(seeds).await.unwrap_err();
    assert!(error.to_string().contains("given twice"), "{error}");
    assert!(matches!(
        join(Vec::new()).await,
        Err(TopologyError::Seeds(_))
    ));
}

#[tokio::test]
async fn addresses_of_two_topologies_are_an_error_that_names_them() {
    let (ours, theirs) = (Servers::spawn(2).await, Servers::spawn(2).await);
    let (one, other) = (ours.found().await.topology, theirs.found().await.topology);
    let error = join(vec![ours.seeds().remove(1), theirs.seeds().remove(0)])
        .await
        .unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
    for named in [
        &ours.addresses()[1],
        &theirs.addresses()[0],
        &one.id,
        &other.id,
    ] {
        assert!(error.to_string().contains(named), "{error}");
    }
    assert_eq!(join(ours.seeds()).await.unwrap().topology, one);
    assert_eq!(join(theirs.seeds()).await.unwrap().topology, other);
}

#[tokio::test]
async fn a_topology_whose_home_is_lost_still_counts_as_another() {
    let (ours, mut theirs) = (Servers::spawn(2).await, Servers::spawn(2).await);
    ours.found().await;
    let home = theirs.place(&theirs.found().await.topology.home.address);
    theirs.0[home].restart().await.unwrap();
    let mut seeds = ours.seeds();
    seeds.extend(theirs.seeds());
    let error = join(seeds).await.unwrap_err();
    assert!(matches!(error, TopologyError::Seeds(_)), "{error}");
}

#[tokio::test]
async fn while_the_home_is_silent_a_copy_does_and_that_is_told() {
    let (servers, founded, home) = Servers::spawn(3).await.founded().await;
    let mut seeds = servers.seeds();
    let newest = successor(&founded.topology);
    servers.copy_to(servers.others(home)[0], &newest).await;
    servers.0[home].stop();
    let joined = join(seeds.clone()).await.unwrap();
    assert_eq!(*joined.topology, newest);
    let told = joined.warnings.iter().any(|warning| {
        warning.contains(&founded.topology.home.address) && warning.contains("--attest-dead")
    });
    assert!(told, "{:?}", joined.warnings);
    // But somebody must have one.
    let error = join_with(vec![seeds.swap_remove(home)], hopeless()).await;
    let error = error.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(
        error.to_string().contains(&founded.topology.home.address),
        "{error}"
    );
}

#[tokio::test]
async fn a_home_that_others_know_by_another_name_is_the_same_home() {
    let servers = Servers::spawn(2).await;
    let topology = servers.found().await.topology;
    let named = |url: String| options(&url.replace("127.0.0.1", "localhost"));
    let seeds = servers.0.iter().map(|server| named(server.url())).collect();
    let joined = join(seeds).await.unwrap();
    assert_eq!(joined.topology, topology);
    assert!(
        joined
            .warnings
            .iter()
            .all(|warning| !warning.contains("no member")),
        "{:?}",
        joined.warnings
    );
}

#[tokio::test]
async fn a_home_is_known_by_its_record_where_its_address_leads_nowhere() {
    let servers = Servers::spawn(2).await;
    let topology = servers.found().await.topology;
    let pointer = format!("{} redis://127.0.0.1:1/0", topology.id);
    for place in 0..2 {
        servers.set(place, POINTER, &pointer).await;
    }
    assert_eq!(join(servers.seeds()).await.unwrap().topology, topology);
}

#[tokio::test]
async fn a_malformed_record_is_an_error_and_is_left_alone() {
    let servers = Servers::spawn(2).await;
    servers.set(1, RECORD, "of somebody else").await;
    let error = join(servers.seeds()).await.unwrap_err();
    assert!(matches!(error, TopologyError::Malformed(_)), "{error}");
    assert!(
        error.to_string().contains(&servers.addresses()[1]),
        "{error}"
    );
    assert_eq!(servers.pointers().await, [None, None]);
    assert_eq!(
        servers.get(1, RECORD).await.as_deref(),
        Some("of somebody else")
    );
}
