//! `ringfence ring show`: the topology and its shards.

use std::{
    env, fs,
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::Args;

use super::{
    RingError, existing,
    picture::{Ring, Terminal, svg},
    print,
    view::{Done, View},
};
use crate::{seeds::Seeds, show};

#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    seeds: Seeds,
    /// Print one JSON object, and no picture
    #[arg(long)]
    json: bool,
    /// Also write the ring to FILE, as an SVG image
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Width of the ring in columns, 0 to 200; 0: no picture
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=200))]
    width: u16,
}

impl Show {
    /// Reads the topology. Changes nothing.
    pub(super) async fn run(&self) -> Result<(), RingError> {
        let client = existing(&self.seeds).await?;
        let view = View::of(&client, Done::Shown).await?;
        let ring = Ring::of(&view.topology)?;
        if let Some(path) = &self.svg {
            let title = format!(
                "Ring of topology {}, version {}",
                view.topology.id, view.topology.version
            );
            fs::write(path, svg(&ring, &title)).map_err(|source| RingError::Undrawn {
                path: path.clone(),
                source,
            })?;
        }
        if !self.json && self.width > 0 {
            let picture = Terminal::new(&ring, self.width.into(), colours());
            show(format!("{picture}\n")).map_err(RingError::Unshown)?;
        }
        print(&view, self.json)
    }
}

/// Whether stdout shows colours, and the user wants them (<https://no-color.org>).
fn colours() -> bool {
    let says = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let dumb = says("TERM").is_some_and(|terminal| terminal == "dumb");
    io::stdout().is_terminal() && says("NO_COLOR").is_none() && !dumb
}
