//! Segments that are lost with their storage: reported, left out, replaced.

use std::{collections::BTreeMap, fmt};

use super::{Counter, CounterError};
use crate::{
    Durability, Layout, Manifest, Seen, Unit,
    limits::HOT_CHANGES_PER_S,
    segment::{
        Accept, Create, Inspect, Prepare, Refusal, Replace, Reply, Request, SegmentView,
        unused_version,
    },
};

/// A segment that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Its number, from 0.
    pub index: u32,
    /// Its content at the last sweep, if there was one.
    pub last_seen: Option<Seen>,
}

/// Lost segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostSegments(pub Vec<LostSegment>);

impl fmt::Display for LostSegments {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(out, "segment{plural} ")?;
        for (nth, LostSegment { index, last_seen }) in self.0.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            match last_seen {
                Some(Seen { owned, at_ms, .. }) => {
                    write!(
                        out,
                        "{comma}{index} ({owned} in it at {at_ms} ms since 1970)"
                    )?;
                }
                None => write!(out, "{comma}{index}")?,
            }
        }
        Ok(())
    }
}

/// What an account is: its unit, its limits, and its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The unit of its money.
    pub unit: Unit,
    /// The least ledger balance: 0, or below by its credit line.
    pub floor: i64,
    /// The greatest ledger balance.
    pub ceiling: Option<i64>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// An account, with the content of every segment, not read at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The account itself.
    pub details: Details,
    /// The segments that exist.
    pub views: BTreeMap<u32, SegmentView>,
    /// Segments that are lost.
    pub lost: LostSegments,
    /// The changes of money per second, by segment, since the last sweep that saw it with other money. Not of all.
    pub changes_per_s: BTreeMap<u32, u64>,
}

impl Inspection {
    /// Whether no segment is in doubt or lost.
    pub fn is_sound(&self) -> bool {
        self.lost.0.is_empty() && !self.is_in_doubt()
    }

    /// Whether a segment is in doubt.
    pub fn is_in_doubt(&self) -> bool {
        self.views.values().any(|view| view.doubtful)
    }

    /// Whether a transfer from or to a segment is not finished.
    pub fn has_unfinished(&self) -> bool {
        self.views.values().any(|view| view.unfinished > 0)
    }

    /// Whether a segment has so many changes that more segments would help.
    pub fn is_hot(&self) -> bool {
        let mut rates = self.changes_per_s.values();
        rates.any(|&rate| rate >= HOT_CHANGES_PER_S)
    }

    /// Whether a segment has money set aside.
    pub fn has_held(&self) -> bool {
        self.views.values().any(|view| view.held > 0)
    }
}

impl Counter {
    /// Describes these segments as lost, with their content at the last sweep that `manifest` knows. It sends no
    /// request, so that failing requests cost no more than others.
    pub(super) fn lost(&self, manifest: &Manifest, indices: &[u32]) -> CounterError {
        let lost = |&index: &u32| LostSegment {
            index,
            last_seen: manifest.last_seen(index),
        };
        CounterError::Lost {
            account: self.account.clone(),
            segments: LostSegments(indices.iter().map(lost).collect()),
        }
    }

    /// Whether the account continues without the `lost` segments. An account with a durability other than `memory`
    /// waits for an operator.
    pub(super) async fn do_without(
        &self,
        manifest: &Manifest,
        lost: &[u32],
    ) -> Result<(), CounterError> {
        match manifest.terms().durability {
            _ if lost.is_empty() => Ok(()),
            // The segments may be those of an account that was created again since.
            Durability::Memory if !self.is_another().await? => Ok(()),
            _ => Err(self.lost(manifest, lost)),
        }
    }

    /// The content of every segment of `manifest`, including doubtful ones.
    pub(super) async fn inspect_by(&self, manifest: &Manifest) -> Result<Inspection, CounterError> {
        let request = |index| (self.at(manifest, index), Request::from(Inspect));
        let requests = (0..manifest.placed()).map(request).collect();
        let answers = self.storage.segments.call_all(requests).await;
        let terms = manifest.terms();
        let mut found = Inspection {
            details: Details {
                unit: terms.unit,
                floor: terms.floor,
                ceiling: terms.ceiling,
                labels: manifest.labels().clone(),
            },
            ..Inspection::default()
        };
        for (index, answer) in (0..).zip(answers) {
            if index >= manifest.segments() && manifest.serves() && answer.is_err() {
                // The segment is planned. The others do not wait for it.
                continue;
            }
            match answer? {
                Err(Refusal::Missing) if is_made(manifest, index) => {
                    let last_seen = manifest.last_seen(index);
                    found.lost.0.push(LostSegment { index, last_seen });
                }
                // The segment is planned and not made yet.
                Err(Refusal::Missing) => {}
                answer => {
                    let mut view = viewed(answer?)?;
                    if view.mark_ms < manifest.first_ms(index) {
                        // Older ids have their homes elsewhere.
                        view.mark_ms = 0;
                    }
                    let rate = manifest
                        .last_seen(index)
                        .and_then(|seen| seen.changes_per_s(&view));
                    found.changes_per_s.extend(rate.map(|rate| (index, rate)));
                    found.views.insert(index, view);
                }
            }
        }
        Ok(found)
    }

    /// Replaces the lost segments of `found`, from number `first` on. Returns the content of all that are there now.
    pub(super) async fn replace_lost(
        &self,
        manifest: &Manifest,
        found: &Inspection,
        first: u32,
    ) -> Result<BTreeMap<u32, SegmentView>, CounterError> {
        let lost = found.lost.0.iter().filter(|lost| lost.index >= first);
        let replace = |&LostSegment { index, last_seen }: &LostSegment| {
            let create = Create {
                prepare: made_for(manifest, index),
                terms: manifest.terms(),
                // What was lost counts as spent.
                credit: 0,
                planned_ms: manifest.planned_ms(),
            };
            let replace = Replace {
                create,
                losses: last_seen.map_or(0, |seen| seen.losses),
                at_ms: self.storage.segments.now_ms(),
            };
            (index, replace.into())
        };
        let replies = self.ask_all(manifest, lost.clone().map(replace)).await?;
        let mut views = found.views.clone();
        for (lost, reply) in lost.zip(replies) {
            views.insert(lost.index, viewed(reply)?);
        }
        Ok(views)
    }

    /// Accepts the segments as they are in `made`, with the versions in `read`, which was read after that. A segment that was
    /// replaced during that read is not accepted: the versions may be from before its loss. Returns the content; `None` if
    /// a segment changed its version since `made`, and was not accepted.
    pub(super) async fn accept_as(
        &self,
        manifest: &Manifest,
        made: &BTreeMap<u32, SegmentView>,
        read: &Inspection,
    ) -> Result<Option<BTreeMap<u32, SegmentView>>, CounterError> {
        let Inspection { views, lost, .. } = read;
        let now_ms = views.values().map(|view| view.now_ms).max();
        let unused = unused_version(now_ms.unwrap_or_default());
        let versions = views.iter().map(|(&index, view)| (index, view.version));
        let lost = lost.0.iter().map(|lost| (lost.index, unused));
        let versions: BTreeMap<u32, u64> = versions.chain(lost).collect();
        let in_force = in_force(manifest);
        let accept = |(&index, view): (&u32, &SegmentView)| {
            // Only a replacement needs them, which is in doubt.
            let others = versions.iter().filter(|(other, _)| **other != index);
            let others = others.filter(|_| view.doubtful);
            let accept = Accept {
                version: view.version,
                others: others.map(|(&other, &version)| (other, version)).collect(),
                in_force: in_force.clone(),
                at_ms: self.storage.segments.now_ms(),
            };
            (index, accept.into())
        };
        let replies = self.ask_all(manifest, made.iter().map(accept)).await?;
        if replies.contains(&Reply::Stale) {
            return Ok(None);
        }
        let accepted = made.keys().zip(replies);
        let accepted = accepted.map(|(&index, reply)| Ok((index, viewed(reply)?)));
        accepted.collect::<Result<_, _>>().map(Some)
    }
}

/// Whether a segment was ever made: it is a home, or may have been one by the plan of a restored manifest.
fn is_made(manifest: &Manifest, index: u32) -> bool {
    index < manifest.segments() || manifest.is_restored()
}

/// The layout for which a replacement is prepared: the one in force, or the plan of a restored manifest.
fn made_for(manifest: &Manifest, index: u32) -> Prepare {
    match manifest.planned() {
        Some(plan) if index >= manifest.segments() => {
            prepare(manifest, plan, manifest.generation())
        }
        _ => in_force(manifest),
    }
}

/// The preparation for the layout in force.
fn in_force(manifest: &Manifest) -> Prepare {
    let layout = manifest.layouts().last().copied().unwrap_or(Layout {
        generation: 0,
        from_ms: 0,
        segments: 0,
    });
    prepare(manifest, layout, layout.generation)
}

/// The request to prepare a segment for `layout`, which was planned when generation `base` was in force.
pub(super) fn prepare(manifest: &Manifest, layout: Layout, base: u64) -> Prepare {
    Prepare {
        generation: layout.generation,
        base,
        from_ms: layout.from_ms,
        closed: manifest.is_closed(),
        mark_ms: manifest.mark_ms(),
        manifest: manifest.encode_copy().into(),
    }
}

pub(super) fn viewed(reply: Reply) -> Result<SegmentView, CounterError> {
    match reply {
        Reply::View(view) => Ok(*view),
        reply => Err(CounterError::unexpected("a read", &reply)),
    }
}
