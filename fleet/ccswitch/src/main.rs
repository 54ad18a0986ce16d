//! The accounts a person owns, and which session runs on which.

mod adopt;
mod list;
mod login;
mod person;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use shared::cli;
use shared::edge::state::State;

#[derive(Parser)]
#[command(name = "ccswitch", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    root: RootOption,
    #[command(subcommand)]
    verb: Verb,
}

/// The state root, as an option.
#[derive(Args)]
struct RootOption {
    /// State root [default: `$RUNGS_HOME` or `~/.rungs`]
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
}

impl RootOption {
    fn open(&self) -> anyhow::Result<State> {
        let path = self.root.clone().or_else(State::default_path);
        let path = path.context("HOME is not set; name the state root with --root")?;
        let path = std::path::absolute(path).context("the state root's path can't be made absolute")?;
        State::open_root(&path).with_context(|| format!("the state root {} can't be used", path.display()))
    }
}

#[derive(Subcommand)]
enum Verb {
    /// Makes the present login an account and sets up the shard `default`
    Adopt(adopt::Args),
    /// Logs in to a further account, with the client's own login
    Login(login::Args),
    /// Lists the accounts, what is known of them, and the shards
    List(list::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.verb {
        Verb::Adopt(args) => adopt::run(&cli.root, args),
        Verb::Login(args) => login::run(&cli.root, args),
        Verb::List(args) => list::run(&cli.root, args),
    };
    cli::finish("ccswitch", done)
}
