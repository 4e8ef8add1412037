//! Shards fail, and answers are lost.

use std::time::Duration;

use ringfence_client::{
    Faults,
    counter::{CounterError, Effect},
};
use ringfence_coordinator::shard::Lane;

use super::{account, amount, client_of, deduct_at_once, exact};

fn faults_of(client: &ringfence_client::Client) -> Vec<Faults> {
    client.faults().into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_and_takes_effect_once() {
    let client = client_of(2).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 4, 1000).await;
    for round in 0..20 {
        for faults in faults_of(&client) {
            match round % 2 {
                0 => faults.lose_reply(Lane::Counters, 1 + round % 3),
                _ => faults.lose_request(Lane::Counters, 1 + round % 3),
            }
        }
        assert_eq!(deduct_at_once(&counters, "coins", 10).await, 10);
    }
    assert_eq!(exact(&counter).await, 800);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_restarts_with_its_data_loses_nothing() {
    let client = client_of(3).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 6, 500).await;
    for faults in faults_of(&client) {
        faults.restart(true);
        assert_eq!(deduct_at_once(&counters, "coins", 50).await, 50);
    }
    assert_eq!(exact(&counter).await, 350);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn failed_requests_tell_whether_they_may_have_been_applied() {
    let client = client_of(1).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 10).await;
    let faults = &faults_of(&client)[0];
    faults.unreachable(true);
    // It is done, and the later attempts cannot know.
    faults.lose_reply(Lane::Counters, 1);
    let id = counters.new_request();
    let error = counter.deduct(&id, amount(1)).await.unwrap_err();
    assert!(
        error.is_retryable() && error.effect() == Effect::Unknown,
        "{error:?}"
    );
    let error = counter
        .deduct(&counters.new_request(), amount(1))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, CounterError::Storage(_)) && error.effect_of_call() == Effect::None,
        "{error:?}"
    );
    faults.unreachable(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    counter.deduct(&id, amount(1)).await.unwrap();
    assert_eq!(exact(&counter).await, 9);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_without_memory_is_told_and_passes() {
    let client = client_of(1).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 2, 10).await;
    let faults = &faults_of(&client)[0];
    faults.out_of_memory(true);
    let id = counters.new_request();
    let error = counter.deduct(&id, amount(1)).await.unwrap_err();
    assert!(error.to_string().contains("no memory"), "{error}");
    assert!(error.is_retryable() && error.effect_of_call() == Effect::None);
    // The whole call was refused, before any id was looked up.
    assert_eq!(error.effect(), Effect::Unknown);
    faults.out_of_memory(false);
    counter.deduct(&id, amount(1)).await.unwrap();
    assert_eq!(exact(&counter).await, 9);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_nothing_of_an_attempt_that_got_no_answer() {
    let client = client_of(1).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 10).await;
    let faults = &faults_of(&client)[0];
    faults.lose_reply(Lane::Counters, 1);
    let (id, one) = (counters.new_request(), amount(1));
    let deduct = counter.deduct(&id, one);
    let restart = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        faults.restart(false);
    };
    let (deducted, ()) = tokio::join!(deduct, restart);
    // It was applied, and the segment is gone.
    let error = deducted.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error:?}");
    assert_eq!(error.effect_of_call(), Effect::Unknown, "{error:?}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_read_is_its_answer_though_an_attempt_got_none() {
    let client = client_of(1).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 10).await;
    let faults = &faults_of(&client)[0];
    faults.lose_reply(Lane::Counters, 1);
    let restart = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        faults.restart(false);
    };
    let (balance, ()) = tokio::join!(counter.balance(), restart);
    // The segment is gone, and so is the manifest.
    let error = balance.unwrap_err();
    assert!(matches!(error, CounterError::Lost { .. }), "{error:?}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_without_an_answer_has_had_no_effect() {
    let client = client_of(1).await;
    let counters = client.counters();
    let counter = account(&counters, "coins", 1, 10).await;
    let faults = &faults_of(&client)[0];
    faults.unreachable(true);
    faults.lose_reply(Lane::Counters, 1);
    let error = counter.inspect().await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(error.effect_of_call(), Effect::None, "{error:?}");
    client.close().await;
}
