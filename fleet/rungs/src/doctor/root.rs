//! Is the state root private, ours, local, and outside the client's folder?

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use shared::edge::config;
use shared::edge::state::State;

use super::{Finding, Looked};
use crate::places;

pub(super) fn check(looked: &Looked) -> Vec<Finding> {
    let root = &looked.places.root;
    let mut findings = vec![place(looked)];
    if fs_err::symlink_metadata(root).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        findings.push(Finding::not_looked(
            "state root",
            format!("{} is not there yet", root.display()),
            "rungs install",
        ));
        return findings;
    }
    findings.push(private(root));
    findings.push(local(root));
    findings.push(config(root));
    findings
}

fn place(looked: &Looked) -> Finding {
    let check = "state root place";
    let root = places::resolve(&looked.places.root);
    let claude = places::resolve(&looked.places.claude_dir);
    if root.starts_with(&claude) {
        return Finding::wrong(
            check,
            format!(
                "{} lies inside the client's folder {}, where the client drops the shard for background sessions",
                root.display(),
                claude.display()
            ),
            "rungs uninstall, move it out, rungs install --root DIR",
        );
    }
    Finding::ok(
        check,
        format!("{} is outside {}", root.display(), claude.display()),
    )
}

fn private(root: &Path) -> Finding {
    let check = "state root";
    let shown = root.display();
    let meta = match fs_err::metadata(root) {
        Ok(meta) => meta,
        Err(error) => return Finding::wrong(check, error.to_string(), "make it readable for you"),
    };
    if !meta.is_dir() {
        return Finding::wrong(
            check,
            format!("{shown} is no folder"),
            "move it away; rungs install",
        );
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Finding::wrong(
            check,
            format!("{shown} belongs to user {}", meta.uid()),
            "name a folder of your own with --root",
        );
    }
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Finding::wrong(
            check,
            format!("{shown} has mode {mode:o}: others can look in"),
            format!("chmod 700 {shown}"),
        );
    }
    Finding::ok(check, format!("{shown} is yours, mode {mode:o}"))
}

/// A config that is not understood is silently the defaults.
fn config(root: &Path) -> Finding {
    let check = "config";
    let shown = root.join("config.json");
    let shown = shown.display();
    match State::open_root(root).map(|state| config::read(&state).1) {
        Err(why) => Finding::not_looked(check, why.to_string(), "make the state root readable for you"),
        Ok(Some(why)) => Finding::wrong(
            check,
            format!("{shown}: {why}; the defaults are in force"),
            "mend it, or remove it and run rungs install",
        ),
        Ok(None) => Finding::ok(check, format!("{shown} is understood, or missing: the defaults")),
    }
}

/// Locks and renames are not to be trusted on a network file system.
fn local(root: &Path) -> Finding {
    let check = "state root file system";
    let shown = root.display();
    match rustix::fs::statfs(root) {
        Err(error) => Finding::not_looked(check, format!("{shown}: {error}"), "make it readable for you"),
        Ok(stat) => match kind(&stat) {
            Kind::Local => Finding::ok(check, format!("{shown} is on a local file system")),
            Kind::Network(name) => Finding::wrong(
                check,
                format!("{shown} is on {name}, where locks and renames can't be relied on"),
                "name a folder on a local disk with --root",
            ),
            Kind::Unknown(name) => Finding::not_looked(
                check,
                format!("{shown} is on {name}, which may be local or not"),
                "see that it is a local disk, or name another with --root",
            ),
        },
    }
}

enum Kind {
    Local,
    #[cfg_attr(target_os = "macos", expect(dead_code, reason = "told by a flag there"))]
    Unknown(&'static str),
    Network(&'static str),
}

#[cfg(target_os = "linux")]
fn kind(stat: &rustix::fs::StatFs) -> Kind {
    // Numbers from statfs(2). The field's type differs between platforms.
    match u64::try_from(stat.f_type).unwrap_or(0) & 0xffff_ffff {
        0x6969 => Kind::Network("NFS"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Kind::Network("SMB"),
        0x0102_1997 => Kind::Network("9P"),
        0x5346_414f => Kind::Network("AFS"),
        0x00c3_6400 => Kind::Network("Ceph"),
        0x0bd0_0bd0 => Kind::Network("Lustre"),
        0x4750_4653 => Kind::Network("GPFS"),
        0x7375_7245 => Kind::Network("Coda"),
        0x6573_5546 => Kind::Unknown("FUSE"),
        _ => Kind::Local,
    }
}

#[cfg(target_os = "macos")]
fn kind(stat: &rustix::fs::StatFs) -> Kind {
    const MNT_LOCAL: u32 = 0x1000;
    if stat.f_flags & MNT_LOCAL == 0 {
        Kind::Network("a network file system")
    } else {
        Kind::Local
    }
}
