use clap::ValueEnum;

/// A rule of sets of locks, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// Keys are waited for in the order that all callers share — in the order in which the caller gave them.
    OneOrder,
    /// What was granted behind the first refusal is given back before the wait — it is kept.
    NothingBehindTheFirstRefusal,
    /// A try that fails gives back what it was granted — it keeps that.
    FailedTriesGiveBack,
    /// A call that ends before a request is answered has it released behind that request — it is forgotten.
    AbandonedRequestsAreReleased,
    /// A set is granted only if all of it is held then — if all of it was granted.
    HeldInTheEnd,
    /// The wait for all keys has one deadline — the wait for each key has its own.
    OneDeadline,
    /// A lock that nobody renews ends — it stays.
    LeasesEnd,
}
