//! Segments that may have lost their last changes, or are lost; and an operator's decision about them.

use std::time::Duration;

use super::{Counter, CounterError, Inspection, patience::Patience, resegment::PLAN_MARGIN_MS};
use crate::{Manifest, VersionedManifest};

impl Counter {
    /// The content of every segment, including doubtful ones, and the lost segments. Not read at one instant.
    ///
    /// # Errors
    ///
    /// The storage gave no answer.
    pub async fn inspect(&self) -> Result<Inspection, CounterError> {
        let manifest = self.certain_manifest().await?.manifest;
        self.inspect_by(&manifest).await
    }

    /// Accepts every doubtful segment as it is, and replaces every lost one by an empty one. Call it when an operator
    /// has compared the account with other books, or can accept the difference. The account is marked and continues.
    /// Returns the content before.
    ///
    /// In those segments, earlier requests that are not recorded are refused as too old from then on, because the lost
    /// part may have decided them. A request may be from the future by up to `skew_ms` of the terms, so this call takes
    /// that long, and a second: requests created after it returns are not too old.
    ///
    /// # Errors
    ///
    /// The storage gave no answer: some segments may be accepted, and others not. Repeat the call.
    /// [`Refusal::ClocksDiffer`](crate::segment::Refusal::ClocksDiffer): by a wrong clock, requests would be too old for as
    /// long as it is ahead.
    pub async fn accept(&self) -> Result<Inspection, CounterError> {
        let (before, until_new) = self.accept_now().await?;
        tokio::time::sleep(until_new).await;
        Ok(before)
    }

    /// As [`accept`](Self::accept), without the wait at its end: for many accounts at once. Returns how long it is until
    /// requests that are created then are not too old.
    ///
    /// # Errors
    ///
    /// Those of [`accept`](Self::accept).
    pub async fn accept_now(&self) -> Result<(Inspection, Duration), CounterError> {
        let mut patience = Patience::default();
        let mut before = None;
        loop {
            patience.round()?;
            let (manifest, found) = self.inspect_to_accept().await?;
            let made = self.replace_lost(&manifest, &found, 0).await?;
            let before = before.get_or_insert(found);
            let read = self.inspect_by(&manifest).await?;
            if !read.lost.0.is_empty() {
                continue;
            }
            let Some(views) = self.accept_as(&manifest, &made, &read).await? else {
                continue;
            };
            self.record_seen(&views).await?;
            let until_new_ms = match before.is_sound() {
                true => 0,
                false => manifest.terms().skew_ms + PLAN_MARGIN_MS,
            };
            return Ok((before.clone(), Duration::from_millis(until_new_ms)));
        }
    }

    /// The manifest and the content of its segments.
    ///
    /// If there is a loss, this writes the manifest: a segment may have lost its preparation for a plan, and a caller
    /// that is about to commit that plan must prepare every segment again.
    async fn inspect_to_accept(&self) -> Result<(Manifest, Inspection), CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let VersionedManifest {
                version, manifest, ..
            } = self.certain_manifest().await?;
            let found = self.inspect_by(&manifest).await?;
            if found.is_sound() {
                return Ok((manifest, found));
            }
            let next = match manifest.planned() {
                // It may be in force: no segment may continue with the layout before it.
                Some(plan) if manifest.is_restored() => {
                    let now_ms = found.views.values().map(|view| view.now_ms).max();
                    let now_ms = now_ms.unwrap_or_else(|| self.storage.segments.now_ms());
                    let from_ms = self.beginning(&manifest, now_ms)?;
                    let next = manifest.plan_later(plan.generation, from_ms)?;
                    next.planned_at(self.storage.segments.now_ms())
                }
                _ => manifest,
            };
            let manifests = &self.storage.manifests;
            let written = manifests.swap(&self.account, version, next.clone());
            if written.await? {
                return Ok((next, found));
            }
        }
    }
}
