//! Copies of the executables: written beside, then renamed over the old ones,
//! so that an upgrade never shows half a program and restarts no session.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use shared::pure::settings_edit::HOOKS;

/// The tools that are installed beside the hooks.
pub(crate) const TOOLS: [&str; 2] = ["rungs", "ccswitch"];

/// All executables of the suite.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    HOOKS.into_iter().chain(TOOLS)
}

/// The folder of the running executable: what was built together lies together.
pub(crate) fn source() -> Result<PathBuf> {
    let me = std::env::current_exe().context("this program does not know where it lies")?;
    let me = fs_err::canonicalize(me)?;
    Ok(me.parent().context("this program lies nowhere")?.to_path_buf())
}

/// Fails with the name of the first program that is missing in `folder`.
pub(crate) fn require(folder: &Path, names: impl Iterator<Item = &'static str>) -> Result<()> {
    for name in names {
        if !is_program(&folder.join(name)) {
            bail!(
                "{} is missing in {}; build all of it with ./install.sh",
                name,
                folder.display()
            );
        }
    }
    Ok(())
}

/// Whether a path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Copies one executable into a folder; false where it is the same already.
pub(crate) fn copy(from: &Path, folder: &Path, name: &str) -> Result<bool> {
    let target = folder.join(name);
    let bytes = fs_err::read(from)?;
    if is_program(&target) && fs_err::read(&target)? == bytes {
        return Ok(false);
    }
    write(&target, &bytes, 0o755)?;
    Ok(true)
}

/// Writes a file whole: beside, then renamed.
pub(crate) fn write(target: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = target.parent().context("a file without a folder")?;
    fs_err::create_dir_all(folder)?;
    let beside = tempfile::Builder::new()
        .prefix(".rungs.")
        .tempfile_in(folder)
        .with_context(|| format!("nothing can be written in {}", folder.display()))?;
    fs_err::write(beside.path(), bytes)?;
    fs_err::set_permissions(beside.path(), std::fs::Permissions::from_mode(mode))?;
    beside.as_file().sync_all()?;
    beside
        .persist(target)
        .with_context(|| format!("{} could not be replaced", target.display()))?;
    Ok(())
}
