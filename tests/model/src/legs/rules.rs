use clap::ValueEnum;

/// A rule of transfers with several legs, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A promise keeps room — it is only an answer.
    PromisesKeepRoom,
    /// The money of a promise is received in an account that is closed since — it is refused.
    PromisesOutliveClosing,
    /// A refusal is recorded, so a repeat is refused too — a repeat is decided again.
    RefusalsAreRecorded,
    /// The source decides once all have promised — once the first has.
    AllPromiseFirst,
    /// A leg is paid after the decision — once all have promised.
    DecidedBeforePaid,
    /// A decision stands — the reservation expires all the same.
    DecisionsStand,
    /// A reservation has one decision — a later one replaces it.
    OneDecision,
    /// A caller takes promises back once a destination refused — also when it gives up.
    OnlyRefusalsTakeBack,
    /// A sweep takes a promise back once nobody can decide any more — at once.
    OnlyTheEndTakesBack,
    /// A credit is remembered until its source is finished — forgotten like any other.
    PinnedUntilFinished,
}
