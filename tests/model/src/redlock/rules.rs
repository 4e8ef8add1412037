use clap::ValueEnum;

/// A rule of replicated namespaces, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// The greatest token of the majority is confirmed at the others — it is used at once.
    GreatestIsConfirmed,
    /// A confirm counts on the client's own record — any shard that raises its tokens counts.
    ConfirmOnItsOwnRecord,
    /// A confirm counts in an open slot — in a sealed one, too.
    ConfirmInAnOpenSlot,
    /// A record is installed in an open slot — in a sealed one, too.
    InstallInAnOpenSlot,
    /// A record is installed after grace — in grace, too.
    InstallAfterGrace,
    /// Adopt raises the shard's tokens to its own — it writes the record only.
    AdoptRaises,
    /// A record put back in grace raises the shard's tokens to its own — it is written only.
    ReclaimRaises,
    /// After a forced removal, a second fresh epoch is raised before a grant — the first is enough.
    SecondEpochAfterRemoval,
    /// A successor replaces the record of a nonce that was released — or that expired.
    SupersedeTheReleased,
    /// After a restart no new lock is granted until grace is over — the shard goes on at once.
    GraceAfterRestart,
    /// A holder puts its record back before its deadline at that shard — for as long as its guard lives.
    ReclaimBeforeItsDeadline,
    /// An attempt confirms before its deadline at that shard — at any time.
    ConfirmBeforeItsDeadline,
    /// An adopt answered after the client's deadline at the former shard changes nothing — it counts.
    AdoptedBeforeItsDeadline,
    /// The next shard adopts a record that the former one acknowledged — of any client.
    AdoptTheAcknowledged,
    /// The next shard compares the former shard's token of the record — the greatest of the majority.
    AdoptComparesItsOwn,
    /// An acquire goes behind a release of the same nonce — it overtakes.
    AcquireBehindItsRelease,
    /// What was asked before a give-back is not waited for any more — it counts.
    GiveBackEndsRequests,
    /// A fence answers the greatest epoch of its tokens, too — only that of its arm.
    FenceAnswersTokenEpochs,
    /// A forced release takes the records of a majority, or none — those that are reached.
    TakenFromAMajority,
    /// … of the holder alone — of everybody.
    TakeTheHoldersAlone,
    /// A record that is gone is written again once a majority was renewed since — at once.
    InstallOnceRenewed,
    /// A turn lasts from the request that it answers — from when it is received.
    TurnFromItsRequest,
    /// A record that passes to a waiter has a fresh token — the last one.
    TurnHasAFreshToken,
    /// What becomes free at the lead is the waiter's — the next client that asks has it.
    WaiterGoesFirst,
    /// A majority counts with the lead's grant — any majority.
    MajorityWithTheLead,
    /// A lead whose shard cannot grant is passed over — it is waited for.
    PassOverADeadLead,
    /// A lead that was passed over leads again once another has it — it does not.
    ReturnToTheLead,
    /// A lead is given back while another has the rest — it is kept.
    GiveAUselessLeadBack,
}
