use clap::ValueEnum;

/// A rule of waiting, which a [control](super::control) switches off.
///
/// The words are those of docs/protocol.md, "Waiting"; after the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A turn's deadline is never counted from its receipt — a late turn is believed for a whole
    /// claim time.
    TurnNeverFromReceipt,
    /// … nor from a later send than the one it echoes — the last re-check counts, answered or not.
    TurnNeverFromALaterSend,
    /// … nor from the last request that was answered `held`, which looks safe and is not.
    TurnNeverFromTheLastHeld,
    /// … nor by the shard's clock, which is one tick off here.
    TurnNeverByTheShardsClock,
    /// A turn lasts its claim time, which may be shorter than the lease — it is believed for the
    /// lease.
    TurnLastsItsClaimTime,
    /// A turn is matched by its nonce — by its key: any attempt of that process takes it.
    TurnMatchesItsNonce,
    /// A re-check that finds the grant made extends it to a full lease — it only reports it.
    RecheckExtends,
    /// While a guard of that nonce lives, a late `held` is ignored — it ends the guard.
    LateHeldIsIgnored,
    /// A script that may grant passes to the queue first — a newcomer finds the lock free and takes
    /// it.
    QueueBeforeNewcomer,
    /// Abandoning an attempt, or releasing, takes the nonce's ticket away — it stays in the queue.
    ReleaseTakesTheTicket,
    /// A release goes behind all requests under way for its nonce — it overtakes.
    ReleaseBehindItsRequests,
    /// A release deletes the record iff it is of that nonce — iff it is of that process.
    ReleaseByNonce,
    /// A renewal extends its own record, and no other — it writes its nonce over any.
    RenewItsOwnRecord,

    /// After a restart no new lock is granted until grace is over — the shard goes on at once.
    GraceAfterRestart,
    /// In grace nothing is passed to the queue, which may have survived — it is.
    NoTurnInGrace,
    /// In grace an acquire is not granted either, be it a repeat — it is answered as ever.
    NoGrantInGrace,
    /// A restarted shard is armed with a fresh epoch — its counter begins again in the same one.
    FreshEpochAfterRestart,
    /// In grace a renewal puts its record back — it is `lost` like any other.
    ReclaimInGrace,
    /// A sealed slot passes nothing to its queue — it does, while the new shard grants.
    SealedNeverPasses,

    /// The script that grants reserves the whole block at the shard — only its first token.
    BlockReservedAtTheShard,
    /// A block belongs to its nonce and dies with it — the next nonce uses the rest.
    BlockDiesWithItsNonce,
    /// Every hand-off takes the next token — the token is handed on with the lock.
    TokenPerHandOff,
    /// An answer to reserve counts for its request — for any guard that is there.
    ReserveMatchesItsRequest,
    /// At most `hand_offs_max` hand-offs once it is known that another process waits — on and on.
    HandOffsAreBounded,
    /// A lingering record is granted again only before its deadline — after it, too.
    NoLocalGrantPastTheDeadline,
    /// … and never once its release was sent — the process still thinks that it has it.
    NoLocalGrantAfterTheRelease,
    /// An answer to renew tells that another process waits, since the push may be lost — it is
    /// silent.
    RenewTellsWhoWaits,
}
