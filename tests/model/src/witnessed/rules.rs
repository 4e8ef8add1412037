use clap::ValueEnum;

/// A rule of witnessed leases, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// The commit that takes a lock over depends on the record and on its holder's beat — on the record alone.
    TakeOversCheckTheBeat,
    /// A deadline counts from the sending of the beat — from its answer.
    DeadlinesCountFromTheSending,
    /// A claim ends unless its document changes — its owner's beats keep it.
    ClaimsGoByTheDocument,
    /// The store removes a beat when its own timer, which may be early by a lease, has counted two leases — one.
    StoreTimersHaveSlack,
    /// A wait counts from the answer of the read that showed record and beat — from the sending of the read.
    WaitsCountFromTheAnswer,
    /// The commit that grants a lock writes the holder's beat — the former beat stays.
    GrantsWriteTheBeat,
}
