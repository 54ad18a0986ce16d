//! `rungs install`: copies, then registers. Idempotent; an upgrade is an install.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use shared::edge::settings_file::{self, Mode, Outcome};
use shared::edge::state::{Durability, State};

use crate::places::{self, PlaceOptions, Places};
use crate::{doctor, out, plugin, programs, registration, try_it, uninstall};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    places: PlaceOptions,
    /// Register nothing in settings.json; print the commands that add the plugin
    #[arg(long)]
    plugin: bool,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Run doctor and try afterwards
    #[arg(long)]
    show: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let places = args.places.places()?;
    let source = programs::source()?;
    check(&places, &source)?;
    if args.dry_run {
        return dry_run(&places, args.plugin);
    }
    // The settings are tried first, so that a refusal leaves nothing behind.
    {
        let scratch = tempfile::tempdir()?;
        let state = places::open_existing(&places.root)?.map_or_else(|| places::open(scratch.path()), Ok)?;
        register(&state, &places, args.plugin, Mode::DryRun)?;
    }
    let before = places::recorded_prefix(&places.root).filter(|prefix| *prefix != places.prefix);
    let state = places::open(&places.root)?;
    let mut copied = 0;
    for name in programs::all() {
        copied += usize::from(programs::copy(&source.join(name), &places.bin(), name)?);
    }
    plugin::lay(&places, &source)?;
    settings_file::note(&state, "prefix", Some(places.prefix.to_string_lossy().into()))?;
    // Somebody will find the folder at three in the morning. (No config.json: a
    // file of today's defaults would hide tomorrow's.)
    state.replace(
        "README",
        registration::STATE_README.as_bytes(),
        Durability::Process,
    )?;
    let outcome = register(&state, &places, args.plugin, Mode::Write)?;
    out::line(&format!(
        "{} of {} programs were new; they are in {}.",
        copied,
        programs::all().count(),
        places.bin().display()
    ));
    out::line(&told(outcome, &places, "is"));
    if let Some(prefix) = before {
        uninstall::remove_copies(&Places {
            prefix: prefix.clone(),
            ..places.clone()
        })?;
        out::line(&format!("The older copies in {} are gone.", prefix.display()));
    }
    if args.plugin {
        tell_plugin(&places);
    } else {
        out::line("The hooks run from the next turn boundary of every session, running ones too.");
    }
    out::line(&format!(
        "To take it back: '{}' uninstall{}",
        places.bin().join("rungs").display(),
        args.places.to_copy(&places)
    ));
    if args.show {
        out::line("\nIs all in order (rungs doctor)?");
        let doctor = doctor::run(doctor::Args::of(args.places))?;
        out::line("\nWhat it does (rungs try):");
        let shown = try_it::run(try_it::Args::default())?;
        if doctor != ExitCode::SUCCESS || shown != ExitCode::SUCCESS {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn dry_run(places: &Places, as_plugin: bool) -> Result<ExitCode> {
    let scratch = tempfile::tempdir()?;
    let state = places::open_existing(&places.root)?.map_or_else(|| places::open(scratch.path()), Ok)?;
    let outcome = register(&state, places, as_plugin, Mode::DryRun)?;
    out::line("Nothing is changed (--dry-run). An install would do this:");
    out::line(&format!("copy the programs to {}", places.bin().display()));
    out::line(&format!(
        "lay the plugin's folder in {}",
        places.marketplace().display()
    ));
    out::line(&told(outcome, places, "would be"));
    if outcome == Outcome::Written && !as_plugin {
        out::line("these hooks would be in it:");
        out::line(&registration::hooks(
            &places.bin().to_string_lossy(),
            &places.root,
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Hooks into the settings, or out of them where the plugin brings them: both
/// at once would run everything twice.
fn register(state: &State, places: &Places, as_plugin: bool, mode: Mode) -> Result<Outcome> {
    let path = places.settings();
    if as_plugin {
        return settings_file::leave_to_plugin(state, &path, mode);
    }
    if plugin::is_enabled_in(settings_file::find(&path)?.bytes.as_deref()) {
        bail!(
            "the plugin {} is enabled in {}, so the hooks would run twice; \
             `claude plugin uninstall {}` first, or install with --plugin",
            plugin::ID,
            path.display(),
            plugin::ID
        );
    }
    let hooks = registration::hooks(&places.bin().to_string_lossy(), &places.root);
    settings_file::put_hooks(state, &path, &hooks, mode)
}

fn told(outcome: Outcome, places: &Places, verb: &str) -> String {
    let path = places.settings();
    let path = path.display();
    match outcome {
        Outcome::Unchanged => format!("{path} {verb} left as it is: it holds what it should."),
        Outcome::Written => format!("{path} {verb} changed; all that is not ours stays to the byte."),
        Outcome::Removed => format!("{path} {verb} removed: it held nothing but ours."),
    }
}

fn tell_plugin(places: &Places) {
    out::line("Now add the plugin with the client itself:");
    out::line(&format!(
        "claude plugin marketplace add {}",
        places.marketplace().display()
    ));
    out::line(&format!("claude plugin install {}", plugin::ID));
}

fn check(places: &Places, source: &Path) -> Result<()> {
    programs::require(source, programs::all())?;
    if let Some(tree) = places::working_tree_of(&places.prefix) {
        bail!(
            "the prefix {} lies in the git working tree {}, where another branch would change \
             running hooks; choose another with --prefix",
            places.prefix.display(),
            tree.display()
        );
    }
    let (root, claude) = (places::resolve(&places.root), places::resolve(&places.claude_dir));
    if root.starts_with(&claude) {
        bail!(
            "the state root {} lies inside the client's folder {}, where the client drops it for \
             background sessions; choose another with --root",
            root.display(),
            claude.display()
        );
    }
    Ok(())
}
