//! Are the hooks there, runnable, switched on, and there once?

use std::path::Path;

use serde_json::Value;
use shared::edge::env;
use shared::pure::settings_edit;

use super::levels::Content;
use super::{Finding, Looked};
use crate::{places, plugin, programs, registration, switch};

pub(super) fn check(looked: &Looked) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (sources, unread) = sources(looked);
    findings.push(once(looked, &sources, &unread));
    findings.extend(registered(looked));
    findings.push(programs_are_there(looked, &sources));
    findings.push(outside_working_trees(&sources));
    findings.push(enabled(looked));
    findings.push(switched_on(looked));
    findings
}

/// A place that registers our hooks, with their programs.
struct Source {
    name: String,
    commands: Vec<String>,
}

fn sources(looked: &Looked) -> (Vec<Source>, Vec<&'static str>) {
    let mut sources = Vec::new();
    for level in &looked.levels.0 {
        if let Content::Read(bytes, _) = &level.content {
            let mut commands: Vec<String> = settings_edit::our_hooks(bytes)
                .unwrap_or_default()
                .into_iter()
                .map(|(_, command, _)| command)
                .collect();
            commands.sort();
            commands.dedup();
            if !commands.is_empty() {
                sources.push(Source {
                    name: level.path.display().to_string(),
                    commands,
                });
            }
        }
    }
    if looked.levels.values().any(|(_, value)| plugin::is_enabled(value)) {
        let bin = plugin::folder(&looked.places).join("bin");
        sources.push(Source {
            name: format!("the plugin {}", plugin::ID),
            commands: settings_edit::HOOKS
                .iter()
                .map(|name| bin.join(name).display().to_string())
                .collect(),
        });
    }
    (sources, looked.levels.unread())
}

fn once(looked: &Looked, sources: &[Source], unread: &[&str]) -> Finding {
    let check = "installed once";
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    match names.as_slice() {
        [] if !unread.is_empty() => Finding::not_looked(
            check,
            format!("no hook seen, but unreadable: {}", unread.join(", ")),
            "make the settings readable first",
        ),
        [] => Finding::wrong(
            check,
            format!("no hook of ours in {}", looked.levels.seen()),
            "rungs install",
        ),
        [one] => Finding::ok(
            check,
            format!("in {one} alone; looked at {}", looked.levels.seen()),
        ),
        more => Finding::wrong(
            check,
            format!("in {}", more.join(" and ")),
            format!(
                "keep one: `rungs install --plugin` takes them out of settings.json, `claude plugin uninstall {}` takes the plugin out",
                plugin::ID
            ),
        ),
    }
}

/// The settings hold this version's registration, for this root.
fn registered(looked: &Looked) -> Option<Finding> {
    let check = "registration";
    let Content::Read(bytes, _) = &looked.levels.user()?.content else {
        return None;
    };
    if settings_edit::our_hooks(bytes).ok()?.is_empty() {
        return None;
    }
    let hooks = registration::hooks(&looked.places.bin().to_string_lossy(), &looked.places.root);
    let path = looked.places.settings();
    Some(match settings_edit::holds(bytes, &hooks) {
        Ok(true) => Finding::ok(check, format!("{} holds this version's hooks", path.display())),
        _ => Finding::wrong(
            check,
            format!(
                "{} holds other hooks of ours than this version's for {} and {}",
                path.display(),
                looked.places.bin().display(),
                looked.places.root.display()
            ),
            "rungs install, with the same --prefix and --root as before",
        ),
    })
}

fn programs_are_there(looked: &Looked, sources: &[Source]) -> Finding {
    let check = "hook programs";
    let all: Vec<&String> = sources.iter().flat_map(|source| &source.commands).collect();
    let gone: Vec<String> = all
        .iter()
        .filter(|command| !programs::is_program(Path::new(command)))
        .map(|command| (*command).clone())
        .collect();
    if !gone.is_empty() {
        return Finding::wrong(
            check,
            format!("missing or not executable: {}", gone.join(", ")),
            "rungs install (from a fresh build: ./install.sh)",
        );
    }
    if all.is_empty() {
        return Finding::not_looked(check, "no hook is registered", "rungs install");
    }
    Finding::ok(
        check,
        format!(
            "{} registered programs are there and executable; prefix {}",
            all.len(),
            looked.places.prefix.display()
        ),
    )
}

fn outside_working_trees(sources: &[Source]) -> Finding {
    let check = "outside git";
    let mut commands = sources.iter().flat_map(|source| &source.commands);
    let inside =
        commands.find_map(|command| Some((command, places::working_tree_of(Path::new(command).parent()?)?)));
    match inside {
        Some((command, tree)) => Finding::wrong(
            check,
            format!("{command} lies in the git working tree {}", tree.display()),
            "rungs install --prefix DIR, with a folder outside any repository",
        ),
        None => Finding::ok(check, "no registered program lies in a git working tree"),
    }
}

fn enabled(looked: &Looked) -> Finding {
    let check = "hooks enabled";
    for key in ["disableAllHooks", "allowManagedHooksOnly"] {
        let set = looked
            .levels
            .values()
            .find(|(_, value)| value.get(key).and_then(Value::as_bool) == Some(true));
        if let Some((level, _)) = set {
            return Finding::wrong(
                check,
                format!("{key} is true in {} ({})", level.path.display(), level.name),
                format!("take {key} out there"),
            );
        }
    }
    let unread = looked.levels.unread();
    if !unread.is_empty() {
        return Finding::not_looked(
            check,
            format!("unreadable: {}", unread.join(", ")),
            "make the settings readable first",
        );
    }
    Finding::ok(
        check,
        format!("nothing disables hooks in {}", looked.levels.seen()),
    )
}

fn switched_on(looked: &Looked) -> Finding {
    let check = "switch";
    let path = looked.places.root.join(switch::OFF);
    match fs_err::symlink_metadata(&path) {
        Ok(_) => Finding::wrong(
            check,
            format!("{} is there: no hook acts", path.display()),
            "rungs on, if nobody means it",
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let home = env::path(env::RUNGS_HOME);
            let elsewhere = home.filter(|home| places::resolve(home) != places::resolve(&looked.places.root));
            let note = elsewhere.map_or_else(String::new, |home| {
                format!("; note: RUNGS_HOME names {}, not this root", home.display())
            });
            Finding::ok(check, format!("{} is not there{note}", path.display()))
        }
        Err(error) => Finding::not_looked(check, error.to_string(), "make the state root readable"),
    }
}
