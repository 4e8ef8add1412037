use clap::ValueEnum;

/// A rule of shares, which a [control](super::control) switches off.
///
/// A moves its slot to B. After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A ticket is granted by its own capacity — by that of the request that runs pass.
    RoomByTheTicketsCapacity,
    /// A read-write lock has a constant capacity — one that its users configure, and change.
    WriterTakesAConstant,
    /// Every holder's shares end by its own lease — all end with the lease that was written last.
    SharesEndAlone,
    /// A release takes its own shares away — the whole record.
    ReleaseTakesItsShares,
    /// Every grant takes the next token — readers take none.
    ReadersAreCounted,

    /// A newcomer never goes before a live ticket — it does, if it fits.
    NoBarging,
    /// A preferred ticket goes before those that are not — behind all.
    PreferredGoFirst,
    /// A preferred newcomer goes before no preferred ticket — before any.
    PreferredWaitForEachOther,
    /// A head that does not fit makes the others wait — the first that fits is granted.
    PassStopsAtTheHead,
    /// Pass grants heads while they fit — one head.
    PassGrantsWhileTheyFit,

    /// Readers of a process have one lease: the last to leave releases it — the first.
    LastHolderReleases,
    /// A reader that comes to others believes until their deadline — for a lease from then on.
    JoinsUntilTheDeadline,

    /// Writers of a process hand their lease on to each other, until one becomes a reader — and after that.
    ReadersHandNothingOn,
    /// A writer that downgrades is a reader before it asks — once it is answered, however late.
    DowngradeEndsBelief,
    /// A downgrade passes — it only writes fewer shares.
    DowngradePasses,
    /// A renewal may lower its shares, and never adds any — it writes those that it carries.
    RenewNeverAdds,

    /// B counts the shares left at A — only its own.
    RoomCountsLeft,
    /// A proof counts shares — holders.
    LeftIsInShares,
    /// Only a sealed slot proves how many shares are left — any.
    ProofAfterTheSeal,
    /// The list is made after the seal — at any time.
    ListAfterTheSeal,
    /// Only proofs and the list lower the shares left at A — an adopted holder takes its shares off.
    LeftFallsByProofOnly,
    /// A holder is adopted without asking for room — only if there is room beside the shares left.
    AdoptNeedsNoRoom,
    /// B is opened once A is empty — once A is sealed.
    OpenAfterEmpty,
    /// A sealed slot never grants to its queue — it does.
    SealedNeverPasses,

    /// After a restart no new lock is granted until grace is over — the shard goes on at once.
    GraceAfterRestart,
    /// In grace a sealed slot proves nothing — it does.
    NoProofInGrace,
    /// … nor does it count as empty — it does.
    NotEmptyInGrace,
    /// In grace nothing is granted from the queue — it is.
    NoPassInGrace,
    /// A holder puts its shares back without asking for room — only if there is room.
    ReclaimNeedsNoRoom,
    /// An entry of another life ends with grace — any write to the record makes all of this life.
    EntriesOfTheirLife,
}
