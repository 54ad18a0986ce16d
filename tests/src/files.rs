//! Small file helpers of the fakes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

/// 0600.
///
/// # Panics
/// When the mode cannot be set.
pub fn make_private(path: &Path) {
    fs_err::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Writes an executable file.
///
/// # Panics
/// When it cannot be written.
pub fn write_executable(path: &Path, text: &str) {
    fs_err::write(path, text).unwrap();
    fs_err::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Reads a JSON file; `None` when it is missing, torn or not JSON.
pub fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs_err::read(path).ok()?).ok()
}

/// Reads a file of JSON lines; a torn last line is left out.
pub fn read_json_lines(path: &Path) -> Vec<Value> {
    let text = fs_err::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.collect()
}
