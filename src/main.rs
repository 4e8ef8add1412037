//! The `ringfence` command.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // It can only be installed already, and nobody else is here yet.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::main()
}
