//! Requests for control of a shard, as values: a table says what each is called, and what replies to it.

use std::time::Duration;

use ringfence_ring::Slot;

use super::{
    Admit, Arm, ArmAnswer, Armed, Arrival, Arrive, AskArmed, AskGroups, ControlLink, CopyIn,
    CopyOut, Declare, DropGroups, Dropped, ForceOpen, ForcedOpen, Groups, HeldStill, Inspect,
    Inspection, List, Listing, LockPage, MarkQuiet, Piece, PutAside, Raise, Scan, ScanPage,
    ShardError, Step, Stepped, StillHeld,
};
use crate::{
    ids::{Epoch, Incarnation},
    name::LockKey,
};

/// A request that is a [`Control`], with the reply to it.
pub trait ControlRequest: Into<Control> {
    /// What replies to it.
    type Reply;

    /// That part of a reply; `None` if it is the reply to something else.
    fn reply(reply: ControlReply) -> Option<Self::Reply>;
}

macro_rules! verbs {
    ($(
        $(#[$doc:meta])*
        $verb:ident($($name:ident: $given:ty),*): $request:ident = $make:expr => $reply:ty;
    )+) => {
        /// A request for control of a shard, for a look at its locks, or of a mover.
        #[derive(Clone, Debug)]
        pub enum Control {
            $($(#[$doc])* $request($request),)+
        }

        /// The reply to the [`Control`] of that name.
        #[derive(Clone, Debug)]
        pub enum ControlReply {
            $(
                #[doc = concat!("To [`Control::", stringify!($request), "`].")]
                $request($reply),
            )+
        }

        $(
            impl From<$request> for Control {
                fn from(request: $request) -> Self {
                    Self::$request(request)
                }
            }

            impl ControlRequest for $request {
                type Reply = $reply;

                fn reply(reply: ControlReply) -> Option<$reply> {
                    match reply {
                        ControlReply::$request(reply) => Some(reply),
                        _ => None,
                    }
                }
            }
        )+

        impl dyn ControlLink + '_ {
            /// Makes a request of any kind.
            ///
            /// # Errors
            ///
            /// Those of [`ControlLink::call`].
            pub async fn ask<R: ControlRequest>(&mut self, request: R) -> Result<R::Reply, ShardError> {
                R::reply(self.call(request.into()).await?).ok_or_else(|| ShardError::Unusable {
                    reason: "it replied to another request".into(),
                })
            }

            $(
                $(#[$doc])*
                pub async fn $verb(&mut self, $($name: $given),*) -> Result<$reply, ShardError> {
                    self.ask($make).await
                }
            )+
        }
    };
}

verbs! {
    /// Gives this life its slots, epoch and grace.
    ///
    /// A life that is armed with the same or a later epoch stays as it is. A life that is armed with an earlier epoch is
    /// armed anew: all of its content is replaced and its grace begins again in full, and is not cut short; no
    /// token repeats. It stays as it is if it has seen a later record than the one of `arm`: a step of that record may
    /// have changed a slot.
    arm(arm: &Arm): Arm = arm.clone() => ArmAnswer;
    /// The state of this life; `None` if it has none.
    armed(): AskArmed = AskArmed => Option<Armed>;
    /// Declares this life quiet at a map version, if every slot of that version is open and grace is
    /// over. A life that is quiet at a later version stays so, and one that knows of a later declaration is not
    /// marked. Answers whether it is quiet now at this version.
    mark_quiet(mark: &MarkQuiet): MarkQuiet = mark.clone() => bool;
    /// Refuses acquires by older views than `declare` from now on. A life that refuses more stays so. Answers how long the
    /// shard goes on granting nothing.
    declare(declare: &Declare): Declare = declare.clone() => Duration;
    /// Moves to a token epoch, if that is greater than the present one.
    raise(incarnation: Incarnation, epoch: Epoch): Raise = Raise { incarnation, epoch } => ();
    /// The holder of a key, and its waiters.
    inspect(key: &LockKey): Inspect = Inspect(key.clone()) => Inspection;
    /// A page of the held locks, found among about [`LIST_PAGE`](crate::limits::LIST_PAGE) records. Page by page, a lock
    /// that is held throughout is listed; one may be listed twice.
    list(list: &List): List = list.clone() => LockPage;
    /// Changes the mode of slots, and keeps the topology that says so.
    step(step: &Step): Step = step.clone() => Stepped;
    /// A page of the keys that are held in sealed slots, found among about
    /// [`SCAN_PAGE`](crate::limits::SCAN_PAGE) records.
    scan(scan: &Scan): Scan = scan.clone() => ScanPage;
    /// Tells the shard the keys that the slots' former shard holds, about
    /// [`SCAN_PAGE`](crate::limits::SCAN_PAGE) keys at a time. Answers the slots that are refused: they
    /// do not come here by that move.
    take_list(listing: &Listing): Listing = listing.clone() => Vec<Slot>;
    /// The part of `still` that is held.
    still_held(still: &StillHeld): StillHeld = still.clone() => HeldStill;
    /// Some of the groups that are left in slots that leave, or are to leave. Grace does not matter.
    groups(ask: &AskGroups): AskGroups = ask.clone() => Groups;
    /// A piece of a group that leaves; `None` if it is not there any more, or its slot does not leave by that move.
    copy_out(copy: &CopyOut): CopyOut = copy.clone() => Option<Piece>;
    /// Puts a piece of a group aside. Answers whether its slot arrives by that move; if not, nothing was done.
    copy_in(copy: &CopyIn): CopyIn = copy.clone() => PutAside;
    /// Makes a group of the pieces that were put aside.
    arrive(arrive: &Arrive): Arrive = arrive.clone() => Arrival;
    /// Drops groups that have arrived at their slots' next shards.
    drop_groups(drop: &DropGroups): DropGroups = drop.clone() => Dropped;
    /// Serves the counters of slots that still come. Answers the slots that are refused: they do not come here by that
    /// move.
    admit(admit: &Admit): Admit = admit.clone() => Vec<Slot>;
    /// Opens slots of a shard that was declared dead, after a time in which no shard has them.
    force_open(force: &ForceOpen): ForceOpen = force.clone() => ForcedOpen;
}
