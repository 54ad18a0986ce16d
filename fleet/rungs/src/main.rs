//! Installs, checks, explains and switches the suite.

mod diagnose;
mod doctor;
mod goal;
mod install;
mod log;
mod places;
mod plugin;
mod programs;
mod registration;
mod status;
mod switch;
mod try_it;
mod uninstall;

use std::process::ExitCode;

use shared::cli as out;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "rungs", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Copies the programs under the prefix and registers the hooks
    Install(install::Args),
    /// Takes back what install (and `ccswitch adopt`) changed, byte for byte
    Uninstall(uninstall::Args),
    /// Looks for what fails silently, and names each fix
    Doctor(doctor::Args),
    /// Tells what is wrong with a session, and what would cure it
    Diagnose(diagnose::Args),
    /// Shows the sessions seen, walls, parked sessions, signals and the switch
    Status(status::Args),
    /// Tells after the fact what was done for a session, what was not, and why
    Log(log::Args),
    /// States, shows, pauses, resumes or ends a session's goal
    Goal(goal::Args),
    /// Switches every hook off at once
    Off(switch::Args),
    /// Lets the hooks act again
    On(switch::Args),
    /// Shows the main job in a throw-away home
    Try(try_it::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Install(args) => install::run(args),
        Verb::Uninstall(args) => uninstall::run(&args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Diagnose(args) => diagnose::run(&args),
        Verb::Status(args) => status::run(&args),
        Verb::Log(args) => log::run(&args),
        Verb::Goal(args) => goal::run(&args),
        Verb::Off(args) => switch::off(&args),
        Verb::On(args) => switch::on(&args),
        Verb::Try(args) => try_it::run(args),
    };
    out::finish("rungs", done)
}
