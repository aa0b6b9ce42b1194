//! `upstrandctl`: asks `upstrand_api` of a running nginx what its upstrands do, and takes upstreams
//! out and back by hand.

#![forbid(unsafe_code)]

mod api;
mod cli;
mod client;
mod failure;
mod run;
mod terminal;
mod text;
mod time;
mod unix;
mod url;
mod view;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Prints and leaves by itself for --help, --version and what it can't parse.
    run::run(&cli::Cli::parse())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod man;
