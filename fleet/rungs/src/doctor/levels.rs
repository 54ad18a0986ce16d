//! The settings levels of the client, strongest last for what is asked here.

use std::path::{Path, PathBuf};

use serde_json::Value;
use shared::edge::settings_file;
use shared::pure::json_span;

use super::Finding;
use crate::places::Places;

/// Where an administrator's settings are.
pub(super) const MANAGED_SETTINGS: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// One settings file.
pub(super) struct Level {
    /// `user`, `project`, `local`, `managed`.
    pub(super) name: &'static str,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) content: Content,
}

/// What a settings file holds.
pub(super) enum Content {
    Missing,
    /// Why it can't be read or is no JSON.
    Bad(String),
    /// The bytes and their meaning.
    Read(Vec<u8>, Value),
}

/// All levels that can be seen from here.
pub(super) struct Levels(pub(super) Vec<Level>);

impl Levels {
    pub(super) fn read(places: &Places, project: &Path, managed: &Path) -> Self {
        let user = places.settings();
        let mut levels = vec![("user", user.clone())];
        for (name, file) in [("project", "settings.json"), ("local", "settings.local.json")] {
            let path = project.join(".claude").join(file);
            if crate::places::resolve(&path) != crate::places::resolve(&user) {
                levels.push((name, path));
            }
        }
        levels.push(("managed", managed.to_path_buf()));
        Self(
            levels
                .into_iter()
                .map(|(name, path)| Level {
                    name,
                    content: read(&path),
                    path,
                })
                .collect(),
        )
    }

    /// The level of the user's own settings.json.
    pub(super) fn user(&self) -> Option<&Level> {
        self.0.iter().find(|level| level.name == "user")
    }

    /// Every level that was read, with its meaning.
    pub(super) fn values(&self) -> impl Iterator<Item = (&Level, &Value)> {
        self.0.iter().filter_map(|level| match &level.content {
            Content::Read(_, value) => Some((level, value)),
            _ => None,
        })
    }

    /// Names of the levels that could not be read.
    pub(super) fn unread(&self) -> Vec<&'static str> {
        self.0
            .iter()
            .filter(|level| matches!(level.content, Content::Bad(_)))
            .map(|level| level.name)
            .collect()
    }

    /// An entry of the `env` block of a level.
    pub(super) fn env<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
        value.get("env")?.get(key)
    }

    /// For an "ok": which levels were looked at.
    pub(super) fn seen(&self) -> String {
        let seen: Vec<String> = self
            .0
            .iter()
            .map(|level| match level.content {
                Content::Missing => format!("{} (missing)", level.name),
                Content::Bad(_) => format!("{} (unreadable)", level.name),
                Content::Read(..) => level.name.to_owned(),
            })
            .collect();
        format!("settings levels {}", seen.join(", "))
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.0
            .iter()
            .filter_map(|level| {
                let shown = level.path.display();
                match &level.content {
                    Content::Read(..) if level.name == "user" => {
                        Some(Finding::ok("settings", format!("{shown} is JSON")))
                    }
                    Content::Missing if level.name == "user" => {
                        Some(Finding::ok("settings", format!("{shown} is missing")))
                    }
                    Content::Bad(why) => Some(Finding::wrong(
                        "settings",
                        format!("{shown} ({}): {why}", level.name),
                        "make it readable, plain JSON; the client ignores such a file as a whole, its hooks included",
                    )),
                    _ => None,
                }
            })
            .collect()
    }
}

fn read(path: &Path) -> Content {
    let bytes = match settings_file::find(path) {
        Ok(found) => found.bytes,
        Err(why) => return Content::Bad(format!("{why:#}")),
    };
    let Some(bytes) = bytes else {
        return Content::Missing;
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Content::Bad("not UTF-8".to_owned());
    };
    let plain = text.trim_start_matches('\u{feff}');
    if plain.trim().is_empty() {
        return Content::Read(Vec::new(), Value::Null);
    }
    if let Err(fault) = json_span::parse(text) {
        return Content::Bad(fault.to_string());
    }
    match serde_json::from_str(plain) {
        Ok(value) => Content::Read(bytes, value),
        Err(why) => Content::Bad(why.to_string()),
    }
}
