//! `ringfence completions` and `ringfence man`: the command line, described for shells and for man.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Command};
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// bash: ringfence completions bash > /etc/bash_completion.d/ringfence
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the man pages into a directory: one for each command
///
/// ringfence man /usr/local/share/man/man1
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Created if it does not exist
    directory: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut cli: Command) -> io::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "ringfence", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &Man, cli: Command) -> io::Result<ExitCode> {
    fs::create_dir_all(&args.directory)?;
    clap_mangen::generate_to(cli, &args.directory)?;
    Ok(ExitCode::SUCCESS)
}
