//! The segments of an account.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
};
use ringfence_client::counter::{Inspection, LostSegment, segment::SegmentView};
use serde::{Deserialize, Serialize};

use super::{
    Dashboard,
    account_list::sum,
    deadline,
    gate::{Refused, Visitor},
};
use crate::{access::Call, errors, fields::namespace};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Empty: `default`.
    #[serde(default)]
    namespace: String,
    name: String,
}

/// An account. Its segments are not read at one instant.
#[derive(Serialize)]
pub(super) struct Account {
    name: String,
    /// The sum over the segments. Amounts are texts: scripts round such large numbers.
    available: String,
    held: String,
    segments: Vec<Segment>,
    /// The numbers of lost segments.
    lost: Vec<u32>,
}

#[derive(Serialize)]
struct Segment {
    index: u32,
    available: String,
    held: String,
    /// Its part of the available amount: 0 to 1.
    part: f64,
    /// It moves no money until an operator has accepted its state.
    doubtful: bool,
}

/// The account of a name.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Visitor(caller): Visitor,
    Query(Which {
        namespace: of,
        name,
    }): Query<Which>,
) -> Result<Json<Account>, Refused> {
    caller.admit(Call::Read(&of, name.as_bytes()))?;
    let counters = dashboard.client.counters_of(namespace(&of));
    let counters = counters.map_err(|error| errors::name(&error))?;
    let counter = counters
        .open(&name)
        .map_err(|error| errors::counter(&error))?;
    let inspected = deadline().run(counter.inspect()).await?;
    let inspected = inspected.map_err(|error| errors::counter(&error))?;
    Ok(Json(Account::of(name, &inspected)))
}

impl Account {
    fn of(name: String, found: &Inspection) -> Self {
        let Inspection { views, lost, .. } = found;
        let available = sum(found, |view| view.value);
        let segment = |(&index, view): (&u32, &SegmentView)| Segment {
            index,
            available: view.value.to_string(),
            held: view.held.to_string(),
            part: view.value as f64 / available.max(1) as f64,
            doubtful: view.doubtful,
        };
        let index = |lost: &LostSegment| lost.index;
        Self {
            name,
            available: available.to_string(),
            held: sum(found, |view| view.held).to_string(),
            segments: views.iter().map(segment).collect(),
            lost: lost.0.iter().map(index).collect(),
        }
    }
}
