//! The hook registration and the plugin's manifests: data from `settings/`,
//! with the places filled in.

use std::path::Path;

use shared::pure::settings_edit::quoted;

const HOOKS: &str = include_str!("../../../settings/hooks.json");
const PLUGIN: &str = include_str!("../../../settings/plugin/.claude-plugin/plugin.json");
const MARKETPLACE: &str = include_str!("../../../settings/marketplace/.claude-plugin/marketplace.json");

/// What the state folder says of itself.
pub(crate) const STATE_README: &str = include_str!("../../../settings/state-readme.txt");

/// The registration for programs in `bin` with the state root `root`.
pub(crate) fn hooks(bin: &str, root: &Path) -> String {
    HOOKS
        .replace("{{bin}}", &escaped(bin))
        .replace("{{root}}", &escaped(&root.to_string_lossy()))
}

/// The same for the plugin: the client fills in the plugin's folder.
pub(crate) fn plugin_hooks(root: &Path) -> String {
    hooks("${CLAUDE_PLUGIN_ROOT}/bin", root)
}

/// The plugin's manifest.
pub(crate) fn plugin() -> String {
    PLUGIN.replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

/// The marketplace's manifest.
pub(crate) fn marketplace() -> String {
    MARKETPLACE.replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

/// The inside of a JSON string literal.
fn escaped(text: &str) -> String {
    let literal = quoted(text);
    let inside = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or_default().to_owned()
}
