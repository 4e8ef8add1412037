//! Money in segments under chaos: what processes asked of accounts while these were resegmented and their
//! shards died, what they were told, and whether that can be true.
//!
//! ```text
//! run ─► nemesis ─► shards (killed, stopped, cut off), layouts, sweeps     by a seed
//!  ├──► teller processes (killed) ─► Desk ─► accounts
//!  │                                  └─► log: before a call is made, and when it is answered
//!  └──► all that is unanswered is asked again, under its own id ─► audit ─► violations
//! ```

mod audit;
mod call;
mod desk;
pub(crate) mod latches;
mod log;
mod run;
mod teller;

pub use audit::{
    ForgottenLayout, Handover, Losses, Rule, Violation, Visitor, audit, audit_losses,
    audit_visitors,
};
pub use call::{Answer, Balance, Call, Deed, EffectWord, End, Logged, LoggedEffect, Order};
pub use desk::Desk;
pub use latches::{LatchCall, LatchDeed, audit_latches};
pub use log::{Attempt, Log, read};
pub use run::{CountersArgs, Outcome, run};
pub use teller::{TellerArgs, run as tell};
