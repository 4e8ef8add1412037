//! The ring changes its shape through the service.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{
        AbortResizeRequest, AddShardRequest, GetTopologyRequest, RemoveShardRequest, ResizeEnd,
        ResizeProgress, ResumeResizeRequest, WeighShardRequest,
        admin_service_client::AdminServiceClient,
    },
};
use ringfence_test_support::{Servers, eventually};
use tonic::{Status, Streaming, transport::Channel};

use super::{
    monitor::{counted, number},
    scene::Scene,
};

const VERSION: &str = "ringfence_topology_version ";
const MOVED: &str = "ringfence_slots_moved_total{";
const MOVING: &str = "ringfence_slots_moving ";

/// The shards and the shares of the slots that they have.
async fn shares(admin: &mut AdminServiceClient<Channel>) -> Vec<(String, f64)> {
    let shown = admin.get_topology(GetTopologyRequest {}).await.unwrap();
    let shards = shown.into_inner().shards.into_iter();
    shards.map(|shard| (shard.id, shard.share)).collect()
}

/// The last progress of a resize.
async fn finished<T>(
    mut answers: Streaming<T>,
    progress: impl Fn(T) -> Option<ResizeProgress>,
) -> Result<ResizeProgress, Status> {
    let mut last = None;
    while let Some(answer) = answers.message().await? {
        last = progress(answer);
    }
    Ok(last.unwrap())
}

fn added(servers: &Servers) -> AddShardRequest {
    AddShardRequest {
        url: servers.urls()[0].clone(),
        ..AddShardRequest::default()
    }
}

#[tokio::test]
#[ignore = "long: three resizes"]
async fn a_shard_joins_is_weighed_and_leaves_while_a_lock_is_held() {
    let scene = Scene::set().await;
    let new = Servers::spawn(1).await;
    let held = scene.other.lock("key").acquire().await.unwrap();
    let mut admin = AdminServiceClient::new(scene.channel().await);

    let answers = admin.add_shard(added(&new)).await.unwrap().into_inner();
    let end = finished(answers, |answer| answer.progress).await.unwrap();
    assert_eq!(end.end(), ResizeEnd::Reached);
    assert!(
        end.slots_moved > 5000 && end.slots_moved == end.slots_to_move,
        "{end:?}"
    );
    assert_eq!(shares(&mut admin).await.len(), 3);
    let moved = async |shard: &str| counted(&scene, MOVED, shard).await;
    assert_eq!(moved("shard=\"c\"").await, f64::from(end.slots_moved));
    assert_eq!(moved("").await, f64::from(end.slots_moved));

    let weigh = WeighShardRequest {
        id: "c".into(),
        weight: 2,
    };
    let answers = admin.weigh_shard(weigh).await.unwrap().into_inner();
    let end = finished(answers, |answer| answer.progress).await.unwrap();
    assert_eq!(end.end(), ResizeEnd::Reached);
    assert!((shares(&mut admin).await[2].1 - 0.5).abs() < 1e-3);

    let id = "c".into();
    let answers = admin.remove_shard(RemoveShardRequest { id }).await.unwrap();
    let end = finished(answers.into_inner(), |answer| answer.progress).await;
    assert_eq!(end.unwrap().end(), ResizeEnd::Reached);
    assert_eq!(shares(&mut admin).await.len(), 2);
    assert!(held.is_held());
}

#[tokio::test]
async fn a_resize_pauses_with_its_call_and_is_resumed_or_turned_back() {
    let scene = Scene::set().await;
    let new = Servers::spawn(1).await;
    let mut admin = AdminServiceClient::new(scene.channel().await);
    let mut answers = admin.add_shard(added(&new)).await.unwrap().into_inner();
    answers.message().await.unwrap();
    drop(answers);
    let again = admin.add_shard(added(&new)).await.unwrap_err();
    assert_eq!(Error::from_status(&again).reason, Reason::ResizeRefused);

    let answers = admin.abort_resize(AbortResizeRequest {}).await.unwrap();
    let end = finished(answers.into_inner(), |answer| answer.progress).await;
    end.unwrap();
    assert_eq!(shares(&mut admin).await.len(), 2);
    let version = number(&scene, VERSION).await;
    assert_eq!(number(&scene, MOVING).await, 0.0);

    let mut answers = admin.add_shard(added(&new)).await.unwrap().into_inner();
    let mut migrating = 0;
    while migrating == 0 {
        let progress = answers.message().await.unwrap().unwrap().progress;
        migrating = progress.unwrap().slots_migrating;
    }
    drop(answers);
    eventually("the numbers are those of the paused resize", || async {
        let record = scene.other.topology();
        let moving: usize = record.migrations.iter().map(|one| one.slots.len()).sum();
        let told = (number(&scene, MOVING).await, number(&scene, VERSION).await);
        moving > 0 && told == (moving as f64, record.version as f64)
    })
    .await;
    let paused_at = number(&scene, VERSION).await;
    assert!(paused_at > version);
    let answers = admin.resume_resize(ResumeResizeRequest {}).await.unwrap();
    let end = finished(answers.into_inner(), |answer| answer.progress).await;
    assert_eq!(end.unwrap().end(), ResizeEnd::Reached);
    assert_eq!(shares(&mut admin).await.len(), 3);
    eventually("no slot moves", || async {
        number(&scene, MOVING).await == 0.0 && number(&scene, VERSION).await > paused_at
    })
    .await;
    assert_eq!(counted(&scene, "ringfence_shard_up{", "").await, 3.0);
}

#[tokio::test]
async fn a_change_that_is_impossible_changes_nothing() {
    let scene = Scene::set().await;
    let mut admin = AdminServiceClient::new(scene.channel().await);
    let mut request = tonic::Request::new(AddShardRequest {
        url: "http://user:s3cret@127.0.0.1".into(),
        ..AddShardRequest::default()
    });
    request.set_timeout(Duration::from_secs(120));
    let refused = admin.add_shard(request).await.unwrap_err();
    let error = Error::from_status(&refused);
    assert_eq!(error.input.unwrap().field, "url");
    assert!(!error.message.contains("s3cret"), "{}", error.message);
    let weigh = WeighShardRequest {
        id: "a".into(),
        weight: 0,
    };
    let refused = admin.weigh_shard(weigh).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).input.unwrap().field, "weight");
    let id = "z".into();
    let refused = admin
        .remove_shard(RemoveShardRequest { id })
        .await
        .unwrap_err();
    let error = Error::from_status(&refused);
    assert_eq!(error.reason, Reason::ResizeRefused);
    assert!(error.message.contains('z'), "{}", error.message);
    assert_eq!(shares(&mut admin).await.len(), 2);
}
