//! `ccswitch login <name>`: a further account, by the client's own login.
//!
//! The client obeys the settings' `env` block, so a login started just so would
//! overwrite the shard `default`'s. It runs with a throw-away config folder and
//! the new store alone (measured, 2.1.332).

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use shared::cli;
use shared::edge::{env, pool_file, spawn, store};
use shared::pure::pool::Login;

use crate::{RootOption, person};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The account's name, yours to choose
    name: String,
    /// The client to log in with
    #[arg(long, value_name = "FILE", default_value = "claude")]
    claude: PathBuf,
}

pub(crate) fn run(root: &RootOption, args: &Args) -> anyhow::Result<ExitCode> {
    let name = args.name.as_str();
    person::is_name(name)?;
    person::only(&format!("ccswitch login {name}"))?;
    let state = root.open()?;
    let folder = store::path(&state, name);
    state.make_dirs("accounts")?;
    let is_new = match fs_err::symlink_metadata(&folder) {
        Ok(found) if found.file_type().is_symlink() => {
            bail!("the account {name} is the client's own login; use /login in a session for it")
        }
        Ok(found) if found.is_dir() => false,
        Ok(_) => bail!("{} is in the way: it is not a folder", folder.display()),
        Err(_) => {
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(&folder)
                .context("the account's store can't be made")?;
            true
        }
    };
    let throw_away = tempfile::tempdir().context("a throw-away config folder can't be made")?;
    let mut command = spawn::command(&args.claude);
    command.args(["auth", "login"]);
    env::without_client_variables(&mut command);
    command.env(env::CLAUDE_CONFIG_DIR, throw_away.path());
    command.env(env::CLAUDE_SECURESTORAGE_CONFIG_DIR, &folder);
    let ended = spawn::foreground(command);
    let login = store::login(&folder);
    if !matches!(login, Login::Present { .. }) && is_new {
        // Only an empty folder goes: whatever the client left stays.
        fs_err::remove_dir(&folder).ok();
    }
    let ended = ended.with_context(|| {
        format!(
            "{} can't be started; name the client with --claude",
            args.claude.display()
        )
    })?;
    match login {
        Login::Present { .. } => {}
        Login::Absent => {
            bail!("the client's login ended ({ended}) and left no login; the account {name} was not made")
        }
        Login::Unreadable(why) => bail!("the login of {name} can't be read: {why}"),
    }
    pool_file::change(&state, 5_000, |pool| {
        if !pool.order.iter().any(|known| known == name) {
            pool.order.push(name.to_owned());
        }
        if let Some(account) = pool.accounts.get_mut(name) {
            account.needs_login_at = None;
        }
    })?;
    cli::line(&format!("account {name}: logged in"));
    Ok(ExitCode::SUCCESS)
}
