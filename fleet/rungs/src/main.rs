//! Installs, checks, explains and switches the suite.

mod diagnose;
mod out;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "rungs", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Tells what is wrong with a session, and what would cure it
    Diagnose(diagnose::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Diagnose(args) => diagnose::run(&args),
    };
    done.unwrap_or_else(|error| {
        out::complain(&format!("rungs: {error:#}"));
        ExitCode::FAILURE
    })
}
