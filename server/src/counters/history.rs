//! The log of an account, as messages.

use ringfence_api::{
    Error,
    v1::{self, EffectKind as Kind, GetHistoryRequest, GetHistoryResponse, RequestId},
};
use ringfence_client::counter::{
    self, AccountEffect, AccountHistory, HistoryCursor, Reference,
    segment::{Effect, EffectKind},
};

use super::messages::at;
use crate::fields;

/// Most effects in one answer of an account with few segments.
const LIMIT: u32 = 1_000;

/// Where to begin, and how many effects to read.
pub(super) fn range(ask: &GetHistoryRequest) -> Result<(HistoryCursor, u32), Error> {
    let limit = match ask.limit {
        0 => LIMIT,
        limit @ 1..=LIMIT => limit,
        limit => return Err(Error::invalid("limit", limit, format!("at most {LIMIT}"))),
    };
    let from = match (&*ask.cursor, ask.since) {
        ("", None) => HistoryCursor::default(),
        ("", since) => HistoryCursor::since(fields::time_ms("since", since)?),
        (cursor, _) => {
            let invalid = |error: counter::HistoryCursorError| {
                Error::invalid("cursor", format!("{cursor:?}"), error.to_string())
            };
            cursor.parse().map_err(invalid)?
        }
    };
    Ok((from, limit))
}

pub(super) fn answer(found: AccountHistory) -> GetHistoryResponse {
    GetHistoryResponse {
        effects: found.effects.into_iter().map(effect).collect(),
        next: found.next.to_string(),
        end: found.is_end,
        lost_segments: found.lost,
    }
}

fn effect(found: AccountEffect) -> v1::AccountEffect {
    let Effect {
        number,
        at_ms,
        kind,
        amount,
        value,
        held,
        reference,
    } = found.effect;
    let word = match kind {
        EffectKind::Deposited(_) => Kind::Deposited,
        EffectKind::Deducted(_) => Kind::Deducted,
        EffectKind::Reserved(_) => Kind::Reserved,
        EffectKind::Confirmed(_) => Kind::Confirmed,
        EffectKind::Cancelled(_) => Kind::Cancelled,
        EffectKind::Expired(_) => Kind::Expired,
        EffectKind::Sent(..) => Kind::Sent,
        EffectKind::Delivered(..) => Kind::Delivered,
        EffectKind::Returned(..) => Kind::Returned,
        EffectKind::Received(_) => Kind::Received,
        EffectKind::Lent { .. } => Kind::Lent,
        EffectKind::Landed { .. } => Kind::Landed,
    };
    let (other_segment, loan) = kind.loan().unwrap_or_default();
    v1::AccountEffect {
        segment: found.segment,
        number,
        follows_gap: found.follows_gap,
        at: Some(at(at_ms)),
        kind: word.into(),
        amount: amount.get(),
        id: kind.request().map(|id| RequestId {
            created_at: Some(at(id.time_ms())),
            name: id.name().to_owned(),
        }),
        counterpart: kind
            .counterpart()
            .map(ToString::to_string)
            .unwrap_or_default(),
        other_segment,
        loan,
        available: value,
        held,
        reference: reference.map_or_else(Vec::new, |Reference(bytes)| bytes.to_vec()),
    }
}
