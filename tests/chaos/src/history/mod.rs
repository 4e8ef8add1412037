//! What happened: each process writes its own file, one event a line; a reader merges them.

mod event;
mod read;
mod recorder;

pub use event::{Answer, Deed, Event, Fault, Kind, Phase, Resized, Share, Token};
pub use read::History;
pub use recorder::Recorder;
