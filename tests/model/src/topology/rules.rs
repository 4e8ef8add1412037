use clap::ValueEnum;

/// A rule of the topology's record, which a [control](super::control) switches off.
///
/// After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A record is used only in the life of its home that it names — in any, be it an old copy that
    /// came back.
    UsedInItsLife,
    /// A recovery raises every fence first — asks, and raises none.
    RecoverFences,
    /// … and leaves no member out — goes on while one is silent.
    NobodyIsSkipped,
    /// … and goes by what they answer to that — by what they answered before.
    AnsweredWithTheFence,
    /// … with an incarnation that no other recovery has — two engines may choose the same.
    IncarnationIsItsOwn,
    /// … and fences unarmed shards, too — only armed ones.
    UnarmedAreFenced,
    /// The newest record or copy is put back in force — the first there is.
    NewestIsRestored,
    /// … iff the home's fence is still this recovery's — in any case.
    RestoredIfStillFenced,
    /// … and plans every move under way again with a fresh epoch — they keep theirs.
    MovesArePlannedAgain,

    /// A mover's step in the name of a record below the fence is refused — it is carried out.
    StepsHeedTheFence,
    /// An arm is — it is carried out.
    ArmsHeedTheFence,
    /// A step leaves a copy of the record it is done for — it leaves none.
    StepsLeaveACopy,
    /// … and so does an arm — it leaves none.
    ArmsLeaveACopy,
    /// Where epochs do not follow a clock, another member has a copy of the record before anything
    /// is done in its name — no copy.
    CopiedAhead,

    /// A life that another had taken the place of is named again, with a fresh epoch, and armed anew — it goes on as it was
    /// armed.
    ReplacedIsArmedAnew,
    /// … with all of grace — with none.
    AnewHasItsGrace,
    /// … before any request goes there, by a record that was read after the connection was opened — by any that was ever
    /// read.
    RequestsGoToTheNamedLife,
    /// … and before a mover takes a step there — as soon as it is armed at all.
    StepsGoToTheArmed,
    /// … by a recovery, too — a member that is armed keeps its epoch.
    RecoveredIfArmedAsNamed,
    /// An epoch arms once: a life without state has a fresh one allotted — it is armed with the one that it had.
    EpochIsUsedOnce,
}
