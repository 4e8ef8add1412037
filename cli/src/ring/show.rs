//! `ringfence ring show`: the topology and its shards.

use clap::Args;

use super::{
    RingError, existing, print,
    view::{Done, View},
};
use crate::seeds::Seeds;

#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Reads the topology. Changes nothing.
    pub(super) async fn run(&self) -> Result<(), RingError> {
        let client = existing(&self.seeds).await?;
        print(&View::of(&client, Done::Shown).await?, self.json)
    }
}
