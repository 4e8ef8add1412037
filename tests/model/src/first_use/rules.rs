use clap::ValueEnum;

/// A rule of first use, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A founding that cannot be finished is undone by the process that meets it — it is left.
    ClaimsAreUndone,
    /// A pointer is taken away once its home was asked, and has no record — at sight.
    HomeIsAskedFirst,
    /// … and unless a member is armed in its name — all the same.
    PointersOfTheArmedStay,
    /// Only an active record arms — one in creation does, too, and asks for no pointer.
    OnlyActiveArms,
}
