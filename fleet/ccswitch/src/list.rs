//! `ccswitch list`: the accounts, what is known of them, and the shards.

use std::process::ExitCode;

use serde_json::{Value, json};
use shared::cli;
use shared::edge::{clock, pool_file, shard, store};
use shared::pure::pool::{Login, Passed};
use shared::pure::time_text;

use crate::RootOption;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(root: &RootOption, args: &Args) -> anyhow::Result<ExitCode> {
    let state = root.open()?;
    let now = clock::now_ms();
    let accounts = store::accounts(&state)?;
    let pool = pool_file::read(&state)?;
    let mut shards = Vec::new();
    for name in state.list("shards")? {
        if shared::pure::pool::is_name(&name) {
            let account = shard::account(&state, &name).map_err(|why| why.to_string());
            shards.push((name, account));
        }
    }
    let mut rows = Vec::new();
    for name in pool.in_order(accounts.keys().map(String::as_str)) {
        let login = accounts.get(name).unwrap_or(&Login::Absent);
        let on = shards
            .iter()
            .filter(|(_, account)| matches!(account, Ok(Some(account)) if account == name));
        let on: Vec<&str> = on.map(|(shard, _)| shard.as_str()).collect();
        rows.push((name, pool.unusable(name, login, now), on));
    }
    if args.json {
        let accounts: Vec<Value> = rows
            .iter()
            .map(|(name, passed, on)| {
                let walls = pool.accounts.get(*name).map(|account| &account.walls);
                json!({ "name": name, "usable": passed.is_none(), "why_not": passed.as_ref().map(why_not), "shards": on, "walls": walls })
            })
            .collect();
        let shards: Vec<Value> = shards
            .iter()
            .map(|(name, account)| match account {
                Ok(account) => json!({ "name": name, "account": account }),
                Err(why) => json!({ "name": name, "error": why }),
            })
            .collect();
        cli::json(&json!({ "format": 1, "looked_at": now, "accounts": accounts, "shards": shards }));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        cli::line("no account yet: `ccswitch adopt <name>` makes your present login one");
    }
    for (name, passed, on) in &rows {
        let state = passed.as_ref().map_or_else(|| "usable".to_owned(), why_not);
        let on = if on.is_empty() {
            String::new()
        } else {
            format!("  <- {}", on.join(", "))
        };
        cli::line(&format!("{name:<20} {state}{on}"));
    }
    for (name, account) in &shards {
        if let Err(why) = account {
            cli::line(&format!("shard {name}: {why}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn why_not(passed: &Passed) -> String {
    match passed {
        Passed::Walled(until) => format!("walled until {}", time_text::rfc3339_s(*until)),
        Passed::NeedsLogin => "needs a new login".to_owned(),
        Passed::NoLogin => "holds no login".to_owned(),
        Passed::Unreadable(why) => format!("not looked at: {why}"),
        Passed::Left => "in use".to_owned(),
    }
}
