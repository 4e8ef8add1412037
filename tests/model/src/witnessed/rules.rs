use clap::ValueEnum;

/// A rule of the clock, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A tick depends on the clock that its process saw — it replaces any.
    TicksDependOnTheClock,
    /// A tick counts from the answer that first showed the clock — from the sending of that request.
    TicksCountFromTheAnswer,
    /// A tick is at most so long as the slack of a process that cannot tell when the last one was — it counts all time.
    TicksAreBounded,
    /// The end of a lease is later by the slack: by how much the next tick may exceed the time — it is not.
    EndsHaveSlack,
    /// The slack counts from the sending of a request that showed an earlier clock — from the answer that showed this one.
    SlackCountsFromAnEarlierClock,
    /// The slack counts to the answer — to the sending.
    SlackCountsToTheAnswer,
    /// Without a read, the slack counts all the time since an earlier clock, or there is none — it is at most one tick.
    SlackWithoutAReadIsWhole,
    /// A deadline counts from the sending of the first request — from the last answer.
    DeadlinesCountFromTheSending,
}
