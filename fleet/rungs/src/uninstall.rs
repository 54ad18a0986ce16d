//! `rungs uninstall`: the settings first, then the copies. The state root stays:
//! it holds the accounts' logins and what happened.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use shared::edge::settings_file::{self, Mode, Outcome};
use shared::edge::{clock, env};

use crate::places::{self, PlaceOptions, Places};
use crate::{out, plugin, programs};

/// How long a running session may still go by the settings that were (ms). A turn
/// 0.3 s after the change still ran the old hooks (measured, 2.1.332); with the
/// programs gone it would show each of them as failing.
const SETTINGS_ARRIVE_MS: u64 = 3_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    places: PlaceOptions,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let places = args.places.places()?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let scratch = tempfile::tempdir()?;
    let state = places::open_existing(&places.root)?.map_or_else(|| places::open(scratch.path()), Ok)?;
    refuse_while_enabled(&places)?;
    if args.dry_run {
        out::line("Nothing is changed (--dry-run). An uninstall would do this:");
    }
    let path = places.settings();
    let back = settings_file::take_back(
        &state,
        &path,
        env::CLAUDE_SECURESTORAGE_CONFIG_DIR,
        &places.root,
        mode,
    )?;
    let shown = path.display();
    out::line(&match (back.outcome, back.identical) {
        (Outcome::Unchanged, _) => format!("{shown}: nothing of ours is in it."),
        (Outcome::Removed, _) => format!("{shown}: removed; it was not there before the install."),
        (Outcome::Written, Some(true)) => {
            format!(
                "{shown}: {} hooks taken out; byte for byte what it was.",
                back.hooks
            )
        }
        (Outcome::Written, _) => format!(
            "{shown}: {} hooks taken out; what was changed since the install stays.",
            back.hooks
        ),
    });
    for key in &back.env {
        out::line(&format!(
            "{shown}: the env entry {key} is taken out; new sessions use the client's own login."
        ));
    }
    out::line(&format!("The programs in {} go.", places.bin().display()));
    if mode == Mode::Write {
        if back.outcome != Outcome::Unchanged && has_sessions(&places.claude_dir) {
            clock::sleep_ms(SETTINGS_ARRIVE_MS);
        }
        remove_copies(&places)?;
        if places.root.exists() {
            settings_file::note(&state, "prefix", None)?;
        }
    }
    out::line(&format!(
        "{} stays: it holds your accounts' logins and what happened. Remove it by hand once you need neither.",
        places.root.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The client reads the plugin in place: without its folder every turn of every
/// session would show failing hooks.
fn refuse_while_enabled(places: &Places) -> Result<()> {
    let path = places.settings();
    if plugin::is_enabled_in(settings_file::find(&path)?.bytes.as_deref()) {
        bail!(
            "the plugin {} is still enabled in {}; first run: claude plugin uninstall {} && claude \
             plugin marketplace remove rungs",
            plugin::ID,
            path.display(),
            plugin::ID
        );
    }
    Ok(())
}

/// Whether the client lists a process, running or left over.
fn has_sessions(claude_dir: &Path) -> bool {
    let entries = fs_err::read_dir(claude_dir.join("sessions"));
    entries.is_ok_and(|entries| {
        let mut paths = entries.flatten().map(|entry| entry.path());
        paths.any(|path| path.extension().is_some_and(|end| end == "json"))
    })
}

/// Removes what install laid, by name, and folders only when they are empty.
pub(crate) fn remove_copies(places: &Places) -> Result<()> {
    for name in programs::all() {
        remove_file(&places.bin().join(name))?;
    }
    let marketplace = places.marketplace();
    if marketplace.join(".claude-plugin/marketplace.json").exists() {
        fs_err::remove_dir_all(&marketplace)?;
    }
    for folder in [places.bin(), places.prefix.clone()] {
        // Not empty: somebody else's files are in it.
        std::fs::remove_dir(folder).ok();
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
