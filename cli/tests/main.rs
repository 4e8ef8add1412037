//! The binary, on real servers.
#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

mod binary;
mod cli;
mod counter;
mod demo;
mod deploy;
mod describe;
mod doctor;
mod jobs;
mod lock;
mod locks;
mod ring;
mod serve;
mod service;
mod traces;
mod uninstall;
