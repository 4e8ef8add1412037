//! Manifests, one change after another.

use super::*;

fn id(time_ms: u64, name: usize) -> RequestId {
    RequestId::new(time_ms, &name.to_string()).unwrap()
}

fn nowhere(_: &[u32], more: u32) -> Vec<u32> {
    vec![0; more as usize]
}

fn created(segments: u32) -> Manifest {
    let manifest = Manifest::new(Terms::in_memory(), segments, nowhere).unwrap();
    manifest.commit(1).unwrap()
}

#[test]
fn a_request_keeps_its_home_whatever_comes_later() {
    let one = created(1);
    let three = one.plan(3, 100, nowhere).unwrap().commit(2).unwrap();
    let two = three.plan(2, 200, nowhere).unwrap().commit(3).unwrap();
    for name in 0..100 {
        assert_eq!(two.home_of(&id(99, name)), Some(0));
        assert_eq!(
            two.home_of(&id(100, name)),
            three
                .home_of(&id(199, name))
                .and(three.home_of(&id(100, name)))
        );
        assert!(two.home_of(&id(200, name)).unwrap() < 2);
    }
    let homes = (0..100).filter_map(|name| two.home_of(&id(150, name)));
    assert_eq!(homes.max(), Some(2));
}

#[test]
fn segments_never_become_fewer() {
    let shrunk = created(3).plan(1, 100, nowhere).unwrap().commit(2).unwrap();
    assert_eq!((shrunk.segments(), shrunk.generation()), (3, 2));
}

#[test]
fn a_generation_is_never_used_twice() {
    let planned = created(1).plan(2, 100, nowhere).unwrap();
    let later = planned.plan_later(2, 50).unwrap();
    assert_eq!(
        later.planned().map(|plan| (plan.generation, plan.from_ms)),
        Some((3, 101))
    );
    assert_eq!(
        later.commit(2),
        Err(ManifestError::NotPlanned { generation: 2 })
    );
    assert_eq!(
        later.plan(2, 0, nowhere),
        Err(ManifestError::Planned { generation: 3 })
    );
    assert_eq!(later.commit(3).unwrap().generation(), 3);
}

#[test]
fn a_restored_plan_that_may_have_been_in_force_is_a_layout_and_what_it_may_have_decided_too_old() {
    let lost = created(1).plan(2, 100, nowhere).unwrap();
    let copy = Manifest::decode(&lost.encode()).unwrap();
    let restored = copy.restored(&created(1), true);
    assert!(restored.is_closed() && restored.is_restored());
    let later = restored.plan_later(2, 150).unwrap();
    assert_eq!((later.generation(), later.mark_ms()), (2, 149));
    let plan = later.planned().unwrap();
    assert!(
        plan.generation > 1 << 20,
        "never one that may have been lost: {plan:?}"
    );
    assert_eq!(plan.from_ms, 150);
    assert!(!later.commit(plan.generation).unwrap().is_restored());
}

#[test]
fn what_a_later_release_writes_is_kept() {
    let text = created(1)
        .encode()
        .replacen('{', r#"{"unit":"EUR","floor":{"units":-5},"#, 1);
    let manifest = Manifest::decode(&text).unwrap();
    let next = manifest.plan(2, 100, nowhere).unwrap().commit(2).unwrap();
    let text = next.encode();
    assert!(text.contains(r#""unit":"EUR""#) && text.contains(r#""floor":{"units":-5}"#));
    assert_eq!(Manifest::decode(&text).unwrap(), next);
    let restored = Manifest::decode(&text)
        .unwrap()
        .restored(&created(1), false);
    assert!(restored.encode().contains(r#""unit":"EUR""#));
}

#[test]
fn a_layout_begins_after_the_one_before() {
    let manifest = created(1).plan(2, 100, nowhere).unwrap().commit(2).unwrap();
    let next = manifest.plan(3, 7, nowhere).unwrap().planned().unwrap();
    assert_eq!(next.from_ms, 101);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for value in [0, SEGMENTS_MAX + 1] {
        assert_eq!(
            created(1).plan(value, 1, nowhere),
            Err(ManifestError::Segments { value })
        );
    }
    let mut manifest = created(1);
    while manifest.layouts().len() < LAYOUTS_MAX {
        let planned = manifest.plan(1, 0, nowhere).unwrap();
        manifest = planned
            .commit(planned.planned().unwrap().generation)
            .unwrap();
    }
    assert_eq!(
        manifest.plan(1, 0, nowhere),
        Err(ManifestError::TooManyLayouts)
    );
}
