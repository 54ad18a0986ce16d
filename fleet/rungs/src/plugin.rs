//! The plugin and its marketplace, laid out under the prefix.
//!
//! The client reads a plugin of a folder marketplace in place (measured,
//! 2.1.332), so the folder holds copies of the programs and is never a git
//! working tree.

use std::path::{Path, PathBuf};

use anyhow::Result;
use shared::pure::settings_edit::HOOKS;

use crate::places::Places;
use crate::{programs, registration};

/// The id under which the client knows the plugin.
pub(crate) const ID: &str = "rungs@rungs";

/// The plugin's folder.
pub(crate) fn folder(places: &Places) -> PathBuf {
    places.marketplace().join("plugins/rungs")
}

/// Lays out marketplace and plugin, with copies of the hooks from `source`.
pub(crate) fn lay(places: &Places, source: &Path) -> Result<()> {
    let plugin = folder(places);
    for name in HOOKS {
        programs::copy(&source.join(name), &plugin.join("bin"), name)?;
    }
    let files = [
        (
            places.marketplace().join(".claude-plugin/marketplace.json"),
            registration::marketplace(),
        ),
        (plugin.join(".claude-plugin/plugin.json"), registration::plugin()),
        (
            plugin.join("hooks/hooks.json"),
            registration::plugin_hooks(&places.root),
        ),
    ];
    for (path, text) in files {
        programs::write(&path, text.as_bytes(), 0o644)?;
    }
    Ok(())
}

/// Whether settings (as bytes) have the plugin enabled; unreadable ones do not.
pub(crate) fn is_enabled_in(bytes: Option<&[u8]>) -> bool {
    let bytes = bytes.unwrap_or_default();
    let plain = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice(plain).is_ok_and(|settings| is_enabled(&settings))
}

/// Whether a settings file (parsed) has the plugin enabled.
pub(crate) fn is_enabled(settings: &serde_json::Value) -> bool {
    settings
        .get("enabledPlugins")
        .and_then(|all| all.get(ID))
        .is_some_and(|value| value != &serde_json::Value::Bool(false))
}
