//! The topology record.

use std::time::Duration;

use proptest::{collection::vec, prelude::*, sample::Index};
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Life},
    name::Namespace,
    shard::Grace,
    topology::{
        Blueprint, Change, Constants, Founder, Home, Namespaces, Removal, Round, Topology, shard_id,
    },
};
use ringfence_ring::{Replicas, Slot, SlotCount, Weight};
use ringfence_test_support::{damaged, damages};
use serde_json::{Value, json};

use super::REASON_BYTES_MAX;

const UNIX: Duration = Duration::from_secs(1_735_689_600 + 100);

fn founder(index: usize) -> Founder {
    Founder {
        id: shard_id(index),
        address: format!("redis://127.0.0.1:{index}/0"),
        life: Life::new(format!("run-{index}:replid")),
        weight: Weight::ONE,
        zone: None,
    }
}

/// Records at rest, with slots that migrate, and with slots to open by force.
fn records() -> Vec<Topology> {
    let mut namespaces = Namespaces::default();
    let ledger = Namespace::new("ledger").unwrap();
    namespaces
        .declare(ledger, Replicas::new(3).unwrap())
        .unwrap();
    let founded = |count, namespaces| {
        let founders: Vec<_> = (0..count).map(founder).collect();
        let blueprint = Blueprint {
            id: 7,
            engine: ClientId(1),
            unix: UNIX,
            after: Epoch::default(),
            constants: Constants {
                removal: Removal::Leased,
                ..Constants::default()
            },
            slots: SlotCount::new(16).unwrap(),
            namespaces,
            home: Home {
                address: founders[0].address.clone(),
                life: founders[0].life.clone(),
            },
            founders,
        };
        Topology::found(blueprint).unwrap()
    };
    let (plain, replicated) = (founded(3, Namespaces::default()), founded(4, namespaces));
    let adding = Change {
        add: vec![founder(7)],
        ..Change::default()
    };
    let begun = plain.begin(adding, UNIX).unwrap();
    let round = Round {
        slots_in_flight: 8,
        ..Round::default()
    };
    let moving = begun.turn(&round, UNIX).unwrap().unwrap();
    let failed = moving.decommission(&shard_id(1), UNIX).unwrap();
    assert!(!moving.migrations.is_empty() && !failed.openings.is_empty());
    vec![plain, replicated, moving, failed]
}

/// What a value in a record becomes.
#[derive(Clone, Debug)]
enum Edit {
    Set(Value),
    /// As another value in the record.
    Copy(Index),
    Remove,
    /// As a number or a text, with another end.
    Damage(Vec<ringfence_test_support::Damage>),
}

fn edits() -> impl Strategy<Value = Vec<(Index, Edit)>> {
    let values = [
        json!(null),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1_u64 << 53),
        json!(u64::MAX),
        json!(""),
        json!("zz"),
        json!("00000"),
        json!("4ffff"),
        json!([]),
        json!({}),
        json!(true),
    ];
    let edit = prop_oneof![
        proptest::sample::select(Vec::from(values)).prop_map(Edit::Set),
        any::<Index>().prop_map(Edit::Copy),
        Just(Edit::Remove),
        damages().prop_map(Edit::Damage),
    ];
    vec((any::<Index>(), edit), 1..4)
}

/// The paths of all values.
fn paths(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                paths(value, &format!("{path}/{name}"), all);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                paths(value, &format!("{path}/{index}"), all);
            }
        }
        _ => {}
    }
}

fn edit(record: &mut Value, at: &Index, edit: &Edit) {
    let mut all = Vec::new();
    paths(record, "", &mut all);
    let path = at.get::<String>(&all);
    let new = match edit {
        Edit::Set(value) => value.clone(),
        Edit::Copy(from) => record.pointer(from.get::<String>(&all)).unwrap().clone(),
        Edit::Damage(damages) => match record.pointer(path).unwrap() {
            Value::String(text) => {
                let text = damaged(text.as_bytes(), damages);
                Value::String(String::from_utf8_lossy(&text).into())
            }
            other => {
                let text = damaged(other.to_string().as_bytes(), damages);
                serde_json::from_slice(&text).unwrap_or_default()
            }
        },
        Edit::Remove => {
            let (parent, name) = path.rsplit_once('/').unwrap_or_default();
            match record.pointer_mut(parent).unwrap() {
                Value::Object(fields) => drop(fields.remove(name)),
                Value::Array(values) if !values.is_empty() => {
                    drop(values.remove(name.parse().unwrap_or_default()));
                }
                _ => {}
            }
            return;
        }
    };
    *record.pointer_mut(path).unwrap() = new;
}

/// What processes and movers do with a record that was read.
fn use_it(record: &Topology) {
    for id in (0..8).map(shard_id) {
        let _ = (
            record.member_state(&id),
            record.weight(&id),
            record.fair_share(&id),
        );
        let _ = (record.is_new(&id), record.grace(&id, true));
        let _ = record.decommission(&id, UNIX);
        let _ = record.reborn(&id, Life::new("next"), UNIX);
        if record.shard(&id).is_some() {
            let _ = record.arm(&id, Grace::None);
            let _ = (record.mark_quiet(&id), record.slots_at_rest(&id).count());
            let _ = (record.force_opens(&id), record.first_opens(&id));
        }
    }
    for slot in (0..64).map(|index| Slot::new(index).unwrap()) {
        let _ = (record.migration_of(slot), record.opening_of(slot));
    }
    let round = Round {
        finished: record
            .migrations
            .iter()
            .map(|migration| (migration.epoch, migration.slots.clone()))
            .collect(),
        slots_in_flight: 8,
        ..Round::default()
    };
    let _ = (record.turn(&round, UNIX), record.preview());
    let _ = (record.abort(UNIX), record.undo_declaration());
    let _ = record.finish_declaration(record.declared, UNIX);
    let coins = Namespace::new("coins").unwrap();
    let _ = record.begin_declaration(&coins, Replicas::new(3).unwrap());
    let change = Change {
        add: vec![founder(9)],
        remove: vec![shard_id(0)],
        ..Change::default()
    };
    let _ = record.begin(change, UNIX);
    let constants = &record.constants;
    let _ = (
        constants.grace(),
        constants.views_last(),
        constants.view_lease(),
    );
    for opening in record.awaiting_views() {
        let _ = record.let_open(opening.epoch, UNIX);
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match Topology::decode(text) {
        Ok(record) => {
            let again = Topology::decode(&record.encode());
            prop_assert_eq!(again.as_ref(), Ok(&record));
            use_it(&record);
        }
        Err(reason) => {
            prop_assert!(reason.starts_with("topology record: "), "{reason}");
            prop_assert!(reason.len() <= REASON_BYTES_MAX, "{reason}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn records_with_other_values_are_of_use_or_refused(which: Index, edits in edits()) {
        let records = records();
        let mut record = serde_json::from_str(&which.get(&records).encode()).unwrap();
        for (at, change) in &edits {
            edit(&mut record, at, change);
        }
        check(&record.to_string())?;
    }

    #[test]
    fn damaged_records_are_of_use_or_refused(which: Index, damages in damages(), text: String) {
        let records = records();
        let bytes = damaged(which.get(&records).encode().as_bytes(), &damages);
        check(&String::from_utf8_lossy(&bytes))?;
        check(&text)?;
    }
}
