use clap::ValueEnum;

/// A rule of a resize, a restart or a removal, which a [control](super::control) switches off.
///
/// A moves its slot to B. After the dash: the behaviour without the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// Only a sealed slot proves that the key is free — a check is enough.
    ProofAfterTheSeal,
    /// A proof is good for its move only — for any, be it planned again after an abort.
    ProofOfItsMove,
    /// … and for its key only — for every key of the slot.
    ProofOfItsKey,
    /// B is opened once A is empty — once A is sealed.
    OpenAfterEmpty,
    /// The keys still held are listed after the seal — at any time.
    ListAfterTheSeal,
    /// … and after grace, when holders have put their records back — in grace.
    ListAfterGrace,
    /// An import raises B's tokens above A's — above the move's epoch only.
    ImportRaisesTokens,
    /// … so a B that was armed in the move grants nothing before that — it does, by any proof.
    ArmedImportWaits,
    /// A mover's step with a lower (epoch, step) than the slot's is refused — it is carried out.
    StepsAreGuarded,
    /// An abort is a move back with a fresh epoch — A is opened again as if nothing had been.
    AbortIsAMoveBack,
    /// A slot that is migrating is not planned again before its move is finished — it is.
    PlannedOnceAtATime,
    /// The move is finished against the version read before B was opened — against any, be B
    /// restarted since.
    FinishExpectsItsVersion,

    /// Adopt answers "already yours" only where its own move brought the record — wherever it is.
    AdoptFindsInItsMove,
    /// … and never writes over another's record with a greater token — over any.
    AdoptNeverOverwrites,
    /// A guard that moved has its deadline from the send of adopt — from that of the removal.
    AdoptedFromItsSend,
    /// The removal at A is bound to its move — it removes whenever it comes.
    RemoveInItsMove,
    /// A nonce with a live guard is released nowhere — at B, if adopt was not answered.
    NoReleaseUnderAGuard,

    /// After a restart no new lock is granted until grace is over — the shard goes on at once.
    GraceAfterRestart,
    /// In grace an acquire is not granted either, be it a repeat — a repeat is.
    NoGrantInGrace,
    /// In grace a sealed slot proves nothing — it does.
    NoProofInGrace,
    /// … nor does it count as empty — it does.
    NotEmptyInGrace,
    /// Opening a slot leaves its shard's grace as it is — it ends it.
    OpenKeepsGrace,
    /// … and so does importing it — it ends it.
    ImportKeepsGrace,
    /// In grace a renewal puts its record back — it is `lost` like any other.
    ReclaimInGrace,
    /// … over an older record that came back — only if none is there.
    ReclaimOverOlder,
    /// … but not when its guard's deadline has passed — then, too.
    NoReclaimPastTheDeadline,
    /// A record of another life ends with grace — it lives as long as it says.
    RecordsOfItsLife,
    /// A restarted shard is armed with a fresh epoch — with the one it began in.
    FreshEpochAtArm,
    /// … in a move, too — it takes the move's.
    FreshEpochInAMove,
    /// A mover's step never makes the state of an unarmed shard — it does.
    StepsNeedAnArmedShard,
    /// A connection asks in the life that it shook hands with — it reconnects by itself, and asks
    /// in the old one.
    HandshakePerConnection,
    /// A failover there and back is another life — it is the same process, so the same life.
    LifeNamesEveryFailover,

    /// After a removal the other shard is opened once every view of the former has lapsed — at once.
    RemovalWaitsForViews,
    /// … and has its grace after that — it has none.
    GraceAfterViews,
    /// … and until then puts nothing back — it does, and grants nothing.
    NoReclaimBeforeViewsLapse,
    /// … and is armed shut if it restarts before — it is armed open.
    ArmedHeirWaits,
    /// … and a holder renews nothing there before that — as soon as it knows of the removal.
    RemovedHolderWaits,
    /// A guard ends with its process's view — only requests end.
    GuardsEndWithTheView,
    /// What a removed shard still answers is dropped — it is believed.
    RemovedIsNotBelieved,

    /// A deadline counts from the send of the very request that was answered — from the last.
    DeadlineFromItsSend,
    /// A repeat that finds its record extends it to a full lease — it only reports it.
    RepeatExtends,
    /// A release deletes the record iff it is of that nonce — iff it is of that process.
    ReleaseByNonce,
    /// A release goes behind all requests under way for its nonce — it overtakes.
    ReleaseBehindItsRequests,
}
