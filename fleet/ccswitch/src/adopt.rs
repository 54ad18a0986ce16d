//! `ccswitch adopt <name>`: the login that is there already becomes an account.
//!
//! Nothing moves: the account is a link to the client's own folder, so running
//! sessions and other config folders keep it, and uninstalling has nothing to
//! give back. The shard `default` is set up, and the client is pointed at it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use shared::cli;
use shared::edge::settings_file::{self, Mode};
use shared::edge::state::State;
use shared::edge::{env, lock, pool_file, shard, store};
use shared::pure::pool::Login;

use crate::{RootOption, person};

/// The shard of every plain session.
pub(crate) const DEFAULT_SHARD: &str = "default";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The account's name, yours to choose
    name: String,
    /// The client's folder [default: `$CLAUDE_CONFIG_DIR` or `~/.claude`]
    #[arg(long, value_name = "DIR")]
    claude_dir: Option<PathBuf>,
}

pub(crate) fn run(root: &RootOption, args: &Args) -> anyhow::Result<ExitCode> {
    let name = args.name.as_str();
    person::is_name(name)?;
    person::only(&format!("ccswitch adopt {name}"))?;
    let claude_dir = args.claude_dir.clone().or_else(env::claude_dir);
    let claude_dir = claude_dir.context("HOME is not set; name the client's folder with --claude-dir")?;
    let folder = fs_err::canonicalize(&claude_dir).with_context(|| {
        format!(
            "{} is not there; start the client once and log in",
            claude_dir.display()
        )
    })?;
    match store::login(&folder) {
        Login::Present { .. } => {}
        Login::Absent => bail!(
            "{} holds no login; start the client and use /login first",
            folder.display()
        ),
        Login::Unreadable(why) => bail!("the login in {} can't be read: {why}", folder.display()),
    }
    let state = root.open()?;
    link(&state, name, &folder)?;
    pool_file::change(&state, 5_000, |pool| {
        if !pool.order.iter().any(|known| known == name) {
            pool.order.push(name.to_owned());
        }
    })?;
    let held = lock::take(&state, shard::POOL_LOCK, 5_000).context("pool.lock can't be taken")?;
    anyhow::ensure!(held.is_some(), "pool.lock is held by another process; try again");
    if shard::account(&state, DEFAULT_SHARD)?.is_none() {
        shard::point(&state, DEFAULT_SHARD, name).context("the shard default can't be made")?;
    }
    drop(held);
    cli::line(&format!(
        "account {name}: the login in {} (nothing was moved)",
        folder.display()
    ));
    point_client(&state, &claude_dir)?;
    Ok(ExitCode::SUCCESS)
}

fn link(state: &State, name: &str, folder: &Path) -> anyhow::Result<()> {
    state.make_dirs("accounts")?;
    for (other, _) in store::accounts(state)? {
        let resolved = fs_err::canonicalize(store::path(state, &other)).ok();
        if resolved.as_deref() == Some(folder) && other != name {
            bail!("{} is already the account {other}", folder.display());
        }
    }
    let path = store::path(state, name);
    match fs_err::symlink_metadata(&path) {
        Ok(_) if fs_err::canonicalize(&path).ok().as_deref() == Some(folder) => Ok(()),
        Ok(_) => bail!("there is already an account {name}; choose another name, or see `ccswitch list`"),
        Err(_) => {
            fs_err::os::unix::fs::symlink(folder, &path).context("the account can't be made")?;
            Ok(())
        }
    }
}

/// Points every plain session at the shard. Where the client keeps the login in
/// the system's keychain the variable would only hide it (macOS).
fn point_client(state: &State, claude_dir: &Path) -> anyhow::Result<()> {
    if cfg!(target_os = "macos") {
        cli::line("this system keeps logins in its keychain: sessions are not moved in place here");
        return Ok(());
    }
    let shard = state.path().join("shards").join(DEFAULT_SHARD);
    let shard = shard
        .to_str()
        .context("the state root's path is not UTF-8; choose another with --root")?;
    let settings = claude_dir.join("settings.json");
    settings_file::set_env(
        state,
        &settings,
        env::CLAUDE_SECURESTORAGE_CONFIG_DIR,
        shard,
        Mode::Write,
    )?;
    cli::line(&format!(
        "{}: sessions follow the shard {DEFAULT_SHARD}; running ones from their next requests on",
        settings.display()
    ));
    Ok(())
}
