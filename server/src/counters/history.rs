//! The log of an account, as messages.

use ringfence_api::{
    Error,
    v1::{self, EffectKind as Kind, GetHistoryRequest, GetHistoryResponse, RequestId},
};
use ringfence_client::counter::{
    self, AccountEffect, AccountHistory, HistoryCursor,
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
    } = found.effect;
    let mut message = v1::AccountEffect {
        segment: found.segment,
        number,
        follows_gap: found.follows_gap,
        at: Some(at(at_ms)),
        amount: amount.get(),
        available: value,
        held,
        ..v1::AccountEffect::default()
    };
    let (kind, id, counterpart) = match kind {
        EffectKind::Deposited(id) => (Kind::Deposited, Some(id), None),
        EffectKind::Deducted(id) => (Kind::Deducted, Some(id), None),
        EffectKind::Reserved(id) => (Kind::Reserved, Some(id), None),
        EffectKind::Confirmed(id) => (Kind::Confirmed, Some(id), None),
        EffectKind::Cancelled(id) => (Kind::Cancelled, Some(id), None),
        EffectKind::Expired(id) => (Kind::Expired, Some(id), None),
        EffectKind::Sent(id, to) => (Kind::Sent, Some(id), Some(to)),
        EffectKind::Delivered(id, to) => (Kind::Delivered, Some(id), Some(to)),
        EffectKind::Returned(id, to) => (Kind::Returned, Some(id), Some(to)),
        EffectKind::Received(credit) => (Kind::Received, Some(credit.id), Some(credit.from)),
        EffectKind::Lent { to, seq } => {
            (message.other_segment, message.loan) = (to, seq);
            (Kind::Lent, None, None)
        }
        EffectKind::Landed { from, seq } => {
            (message.other_segment, message.loan) = (from, seq);
            (Kind::Landed, None, None)
        }
    };
    message.set_kind(kind);
    message.id = id.map(|id| RequestId {
        created_at: Some(at(id.time_ms())),
        name: id.name().to_owned(),
    });
    message.counterpart = counterpart.map_or_else(String::new, |account| account.to_string());
    message
}
