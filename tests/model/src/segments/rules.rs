use clap::ValueEnum;

/// A rule of segments, which a [control](super::control) switches off.
///
/// The words are those of docs/protocol.md, "Balances in segments"; after the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// An id's first answer is remembered — every request is carried out.
    IdsAreRemembered,
    /// … with its content, and another one is a conflict — it gets the answer of the first.
    ContentIsCompared,
    /// A purge raises the mark at and below which ids are too old — it only drops entries.
    PurgeRaisesTheMark,

    /// A lender whose last loan has a greater number than the one that landed answers with that loan — it is debited again.
    LendRepeatsItsAnswer,
    /// A loan is made after the last one that landed, as read at the borrower — after the last lent, as read
    /// at the lender, over what has not landed.
    LendFollowsTheLanded,
    /// Lending raises the version — it is not seen.
    LendRaisesTheVersion,
    /// What was lent lands once — as often as it is said to.
    LandOnce,
    /// Landing raises the version, too — it is not seen.
    LandRaisesTheVersion,
    /// Money in flight to a third segment is landed there — it is waited for.
    StrandedIsLanded,

    /// Insufficient takes a second read — one at each is enough, and nothing is compared.
    InsufficientTakesTwoReads,
    /// … at the others, too — only home's version is compared.
    OthersAreReadAgain,
    /// … sent after every first read was answered — each as soon as its own was.
    SecondReadsFollowEveryFirst,
    /// … and home's version compared as it is recorded — only the others'.
    HomesVersionIsCompared,
    /// Money in flight is part of the sum — only money at segments.
    InFlightIsSummed,
    /// Nothing is concluded from a freeze — frozen segments are not read again.
    FreezeProvesNothing,
    /// Insufficient is recorded — it is only answered.
    InsufficientIsRecorded,
    /// … where nothing is — over any answer.
    RecordedStays,
    /// An exact balance takes a second read of all — one is enough.
    ExactTakesTwoReads,

    /// An id's home is that of the layout in force at its time — of the newest; a new segment takes
    /// ids of any time.
    HomeByTheIdsTime,
    /// A layout is in force once every segment is prepared — at once.
    PreparedBeforeCommit,
    /// A prepared segment refuses ids that may have another home — it takes them.
    PreparedRefusesNewIds,
    /// It is prepared only if no id of the new layout was decided — without asking.
    PrepareComparesDecided,
    /// … a credit, too, or a cancellation ahead of its reservation — only what operations decided.
    EveryDecisionCounts,
    /// … nor is below its mark — without asking.
    PrepareComparesTheMark,
    /// It keeps which layouts it knew before the plan — every earlier one is as good.
    BaseIsKept,
    /// A read by an older layout is refused — it is answered.
    CollectByTheLayout,
    /// A request that is short, or refused, by an older layout is answered `layout` — it is answered otherwise.
    ShortByTheLayout,
    /// A manifest that went back in time is restored before anything else is done with it — it is used as it is.
    LostManifestIsRestored,
    /// … from the newest copy at a segment, which is a plan upon the layouts that it was made upon — a plan above it,
    /// upon the layouts that the manifest still has.
    RestoredFromTheCopy,
    /// … which may have been in force: if it must be replaced, the next one makes what it may have decided too old — it
    /// is taken for a layout, and no more.
    RestoredPlanMarks,

    /// A transfer's source takes no money back by itself — after a while it does.
    SourceTakesNothingBack,
    /// A credit is kept while the source may not be finished — purged.
    PinnedIsNotPurged,
    /// … until it is — as soon as it was answered.
    ForgottenAfterTheFinish,
    /// A credit is given once — every time it is asked for.
    CreditOnce,
    /// … and never to an id at or below the mark — if it is not recorded.
    CreditAboveTheMark,
    /// A source that does not know a credited transfer any more was finished: the credit is unpinned — it
    /// stays for ever.
    PurgedSourceIsFinished,

    /// A credit to an account that does not exist is refused — it waits for the account.
    NoAccountRefuses,
    /// … in the account's manifest — only by the caller that finds none.
    RefusedInTheManifest,
    /// … so that an account that is created later begins with its mark there — at nothing.
    CreatedAboveTheRefused,

    /// Only a reservation is confirmed or cancelled — a transfer that is held, too.
    OnlyReservationsEnd,
    /// Only held reservations are confirmed — expired ones, too.
    OnlyHeldIsConfirmed,
    /// … cancelled — any.
    OnlyHeldIsCancelled,
    /// … and expires — again, too.
    OnlyHeldExpires,
    /// Expiry raises the version — it is not seen.
    ExpiryRaisesTheVersion,
    /// Cancelling an unknown reservation is recorded — only answered.
    CancelIsRecorded,

    /// A segment that may have lost its tail moves no money until a person has accepted it — it goes on.
    LostTailIsDoubtful,
    /// Its version is one that it never had — the one that it had then.
    LossRaisesTheVersion,
    /// A lender behind its borrower is asked, too, and believes that its last loan landed — only one that is even.
    LenderBelievesTheLanded,
    /// A loan's number is the lender's version — the one after the last that landed.
    NumbersNeverRepeat,
    /// A segment that was gone lands only loans above the versions of its lenders, read once it was replaced — every one.
    AnewHasHadEveryLoan,
    /// … and is accepted only at the version that was read — at any, so that a read from before a later loss counts.
    AcceptNamesTheVersion,
    /// … has a version above all that it had — begins with none.
    AnewVersionFollowsTheClock,
    /// … with a mark that every id of before is below — with none.
    AnewBeginsAtNow,
    /// A credit that it may have given before is answered as given — refused.
    AnewMayHaveCredited,
}
