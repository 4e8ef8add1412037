use clap::ValueEnum;

/// A rule of tokens drawn ahead, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A session that reads the lock draws tokens after that — it goes on with its reserve.
    ReadsDraw,
    /// A reserve ends before documents are forgotten — it lasts.
    ReservesEnd,
    /// A reserve is for the head under which it was drawn — it serves later ones, too.
    ReservesHaveAHead,
    /// A session that raised the last token gives its reserve up — it goes on with it.
    RaisesEndReserves,
    /// What a refusal shows of the lock is not used — a session commits by it, with its reserve.
    RefusalsForget,
}
