//! The state root: every read and write of our own files goes through here.
//!
//! Paths are resolved beneath an open handle of the root and follow no symbolic
//! link, so a planted link can neither leak nor overwrite a file elsewhere. (The
//! shards and the adopted account are links on purpose; `store` handles those.)
//! Files are private, owner-checked and read up to a bound. A file is replaced
//! whole: written beside, then renamed.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{self, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::env;

/// The most that is read of any state file, in bytes.
pub const STATE_FILE_BYTES_MAX: usize = 4 << 20;

/// How deep a folder of ours can be.
const TREE_DEPTH_MAX: usize = 8;

const DIR_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Whether a replaced file must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the death of the process; a power cut may bring the old one back.
    Process,
    /// Survives a power cut: for what would repeat an act or lose a login.
    Power,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading; it must exist.
    Read,
    /// For whole lines at the end; made if missing.
    Append,
    /// As a lock; made if missing.
    Lock,
    /// Made by us, now; an existing one is an error.
    Exclusive,
}

/// An open state root.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    dir: OwnedFd,
    /// Whose files are ours; asked once.
    uid: u32,
}

impl State {
    /// Where the root is when nothing names it: `$RUNGS_HOME`, else `~/.rungs`.
    pub fn default_path() -> Option<PathBuf> {
        env::path(env::RUNGS_HOME).or_else(|| Some(env::path(env::HOME)?.join(".rungs")))
    }

    /// Opens the root, making it (private) where it is missing.
    ///
    /// # Errors
    /// It can't be made or opened, is not a folder, or belongs to another user.
    pub fn open_root(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = match fs::openat(CWD, path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                if let Some(parent) = path.parent() {
                    fs_err::create_dir_all(parent)?;
                }
                match fs::mkdirat(CWD, path, DIR_MODE) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                fs::openat(CWD, path, flags, Mode::empty())?
            }
            other => other?,
        };
        let uid = rustix::process::geteuid().as_raw();
        owned_by(uid, dir.as_fd())?;
        Ok(Self {
            path: path.to_path_buf(),
            dir,
            uid,
        })
    }

    /// The root's path, for messages and for the links of rung 2.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file or folder of that name is there. A name that can't be
    /// looked at counts as there: the switches err on the side of doing nothing.
    pub fn exists(&self, name: &str) -> bool {
        !matches!(
            fs::accessat(&self.dir, name, fs::Access::EXISTS, AtFlags::empty()),
            Err(Errno::NOENT | Errno::NOTDIR)
        )
    }

    /// Opens a file beneath the root.
    ///
    /// # Errors
    /// As the system says; a link on the way, another owner or another kind of
    /// file is an error too.
    pub fn open(&self, name: &str, access: Access) -> io::Result<OwnedFd> {
        Ok(self.open_sized(name, access)?.0)
    }

    /// As [`State::open`], with the file's size in bytes: the look at its owner
    /// tells it anyway.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn open_sized(&self, name: &str, access: Access) -> io::Result<(OwnedFd, u64)> {
        let base = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = match access {
            Access::Read => base | OFlags::RDONLY,
            Access::Append => base | OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
            Access::Lock => base | OFlags::RDWR | OFlags::CREATE,
            Access::Exclusive => base | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        };
        let file = match self.open_beneath(name, flags) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {
                if let Some((parent, _)) = name.rsplit_once('/') {
                    self.make_dirs(parent)?;
                }
                self.open_beneath(name, flags)?
            }
            other => other?,
        };
        let stat = regular_and_owned_by(self.uid, file.as_fd())?;
        Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    fn open_beneath(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) {
            FILE_MODE
        } else {
            Mode::empty()
        };
        #[cfg(target_os = "linux")]
        match fs::openat2(
            &self.dir,
            name,
            flags,
            mode,
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        ) {
            // Kernels before 5.6 and strict sandboxes lack the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
        self.open_step_by_step(name, flags, mode)
    }

    /// What `openat2` does in one call: each folder on the way is opened in the
    /// one before, and none of them may be a link.
    fn open_step_by_step(&self, name: &str, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut at = None;
        let mut parts = name.split('/');
        let last = parts.next_back().unwrap_or(name);
        for part in parts {
            let from = at.as_ref().map_or(self.dir.as_fd(), OwnedFd::as_fd);
            at = Some(fs::openat(from, part, step, Mode::empty())?);
        }
        let from = at.as_ref().map_or(self.dir.as_fd(), OwnedFd::as_fd);
        fs::openat(from, last, flags, mode)
    }

    /// Acts on a name within its folder, which is reached through no link.
    fn beneath<T>(
        &self,
        name: &str,
        act: impl FnOnce(BorrowedFd<'_>, &str) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let Some((folder, last)) = name.rsplit_once('/') else {
            return act(self.dir.as_fd(), name);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        act(self.open_beneath(folder, flags)?.as_fd(), last)
    }

    /// Makes the folders of `name` beneath the root, private, following no link.
    ///
    /// # Errors
    /// As the system says.
    pub fn make_dirs(&self, name: &str) -> io::Result<()> {
        let mut made = String::with_capacity(name.len());
        for part in name.split('/') {
            if !made.is_empty() {
                made.push('/');
            }
            let parent = self.open_dir(&made)?;
            match fs::mkdirat(&parent, part, DIR_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            made.push_str(part);
        }
        Ok(())
    }

    fn open_dir(&self, name: &str) -> io::Result<OwnedFd> {
        let name = if name.is_empty() {
            "."
        } else {
            name.trim_end_matches('/')
        };
        Ok(self.open_beneath(
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        )?)
    }

    /// Reads a whole file; `None` where it is missing.
    ///
    /// # Errors
    /// Unreadable, not ours, or larger than [`STATE_FILE_BYTES_MAX`].
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open(name, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut bytes = Vec::with_capacity(4096);
        loop {
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => return Ok(Some(bytes)),
                Ok(_) if bytes.len() > STATE_FILE_BYTES_MAX => {
                    return Err(io::Error::new(
                        ErrorKind::FileTooLarge,
                        format!("{name} is larger than a state file may be"),
                    ));
                }
                Ok(_) => bytes.reserve(4096),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the last `bytes_max` of a file; the flag says whether that is all
    /// of it. `None` where it is missing.
    ///
    /// # Errors
    /// Unreadable or not ours.
    pub fn read_tail(&self, name: &str, bytes_max: usize) -> io::Result<Option<(Vec<u8>, bool)>> {
        match self.open(name, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => read_tail_of(other?.as_fd(), bytes_max).map(Some),
        }
    }

    /// Appends whole lines with one write, so that parallel writers never mix.
    ///
    /// # Errors
    /// As the system says; a short write is an error.
    pub fn append(&self, name: &str, lines: &[u8]) -> io::Result<()> {
        let file = self.open(name, Access::Append)?;
        append_lines(file.as_fd(), lines)
    }

    /// Makes a file that must not exist yet, with its content.
    ///
    /// `Ok(false)` means that it was there already: somebody else has the claim.
    ///
    /// # Errors
    /// As the system says; a file that could not be filled is taken away again.
    pub fn create(&self, name: &str, content: &[u8], durability: Durability) -> io::Result<bool> {
        // Filled beside and linked into place, so that a claim never shows empty.
        let beside = self.write_beside(name, content, durability)?;
        let linked = fs::linkat(&self.dir, &beside, &self.dir, name, AtFlags::empty());
        let removed = fs::unlinkat(&self.dir, &beside, AtFlags::empty());
        match linked {
            Ok(()) => {
                removed?;
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a file whole: the old content or the new, never a part.
    ///
    /// # Errors
    /// As the system says; the old file is then untouched.
    pub fn replace(&self, name: &str, content: &[u8], durability: Durability) -> io::Result<()> {
        let beside = self.write_beside(name, content, durability)?;
        match fs::renameat(&self.dir, &beside, &self.dir, name) {
            Ok(()) => Ok(()),
            Err(error) => {
                // The rename's error is the one to report.
                fs::unlinkat(&self.dir, &beside, AtFlags::empty()).ok();
                Err(error.into())
            }
        }
    }

    fn write_beside(&self, name: &str, content: &[u8], durability: Durability) -> io::Result<String> {
        let beside = format!("{name}.{}.tmp", rustix::process::getpid().as_raw_nonzero());
        let file = match self.open(&beside, Access::Exclusive) {
            // Left by a process of the same pid that died in between.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::unlinkat(&self.dir, &beside, AtFlags::empty())?;
                self.open(&beside, Access::Exclusive)?
            }
            other => other?,
        };
        let written = write_all_at_once(file.as_fd(), content).and_then(|()| match durability {
            Durability::Process => Ok(()),
            Durability::Power => Ok(fs::fsync(&file)?),
        });
        if let Err(error) = written {
            fs::unlinkat(&self.dir, &beside, AtFlags::empty()).ok();
            return Err(error);
        }
        Ok(beside)
    }

    /// Takes a file away; a missing one is fine.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.beneath(name, |folder, last| fs::unlinkat(folder, last, AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a folder away with all that is in it; of a link, the link alone. A
    /// missing one is fine.
    ///
    /// # Errors
    /// As the system says; part of it may be gone then.
    pub fn remove_tree(&self, name: &str) -> io::Result<()> {
        Ok(self.beneath(name, |folder, last| remove_tree(folder, last, TREE_DEPTH_MAX))?)
    }

    /// Gives a file another name in its folder, replacing what is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(self.beneath(from, |from_folder, from| {
            self.beneath(to, |to_folder, to| fs::renameat(from_folder, from, to_folder, to))
        })?)
    }

    /// Names in a folder, sorted; none where it is missing.
    ///
    /// # Errors
    /// As the system says.
    pub fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let dir = match self.open_dir(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&dir)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Size of a file in bytes and when it was last written (ms since 1970).
    ///
    /// # Errors
    /// Missing or unreadable.
    pub fn stat(&self, name: &str) -> io::Result<(u64, i64)> {
        let stat = self.beneath(name, |folder, last| {
            fs::statat(folder, last, AtFlags::SYMLINK_NOFOLLOW)
        })?;
        // The field's sign differs between systems.
        let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let written = stat.st_mtime * 1000 + nanoseconds / 1_000_000;
        Ok((u64::try_from(stat.st_size).unwrap_or(0), written))
    }

    /// The root's handle, for rung 2's links.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// Reads the last `bytes_max` of an open file; the flag says whether that is all.
///
/// # Errors
/// As the system says.
pub fn read_tail_of(file: BorrowedFd<'_>, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let size = usize::try_from(fs::fstat(file)?.st_size).unwrap_or(0);
    let start = size.saturating_sub(bytes_max);
    let mut bytes = vec![0; size - start];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, (start + filled) as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok((bytes, start == 0))
}

fn remove_tree(folder: BorrowedFd<'_>, name: &str, depth: usize) -> rustix::io::Result<()> {
    match fs::unlinkat(folder, name, AtFlags::empty()) {
        // Linux says the one of a folder, other systems the other.
        Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
        Err(Errno::NOENT) => return Ok(()),
        other => return other,
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let dir = fs::openat(folder, name, flags, Mode::empty())?;
    for entry in fs::Dir::read_from(&dir)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(inner) => remove_tree(dir.as_fd(), inner, depth - 1)?,
            // Not a name of ours: the folder stays, not empty.
            Err(_) => return Err(Errno::ILSEQ),
        }
    }
    fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

/// Appends whole lines with one call, so that parallel writers never mix.
///
/// # Errors
/// As the system says; a short write is an error.
pub fn append_lines(file: BorrowedFd<'_>, lines: &[u8]) -> io::Result<()> {
    let written = write_all_at_once(file, lines);
    if written
        .as_ref()
        .is_err_and(|why| why.kind() == ErrorKind::WriteZero)
    {
        // The next line must not be lost with this torn one.
        rustix::io::write(file, b"\n").ok();
    }
    written
}

/// Writes all of it with one call.
///
/// # Errors
/// As the system says; a short write is an error.
fn write_all_at_once(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    loop {
        match rustix::io::write(file, bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(_) => {
                return Err(io::Error::new(
                    ErrorKind::WriteZero,
                    "only part of it could be written",
                ));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn owned_by(uid: u32, file: BorrowedFd<'_>) -> io::Result<fs::Stat> {
    let stat = fs::fstat(file)?;
    if stat.st_uid == uid {
        Ok(stat)
    } else {
        Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it belongs to another user",
        ))
    }
}

fn regular_and_owned_by(uid: u32, file: BorrowedFd<'_>) -> io::Result<fs::Stat> {
    let stat = owned_by(uid, file)?;
    if fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        Ok(stat)
    } else {
        Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A root whose folder `out` is a link to a folder outside with a file `f`.
    fn linked() -> (tempfile::TempDir, State) {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open_root(&dir.path().join("root")).unwrap();
        fs_err::create_dir(dir.path().join("outside")).unwrap();
        fs_err::write(dir.path().join("outside/f"), "theirs").unwrap();
        symlink("../outside", state.path().join("out")).unwrap();
        (dir, state)
    }

    #[test]
    fn nothing_is_reached_through_a_link() {
        let (dir, state) = linked();
        assert!(state.remove("out/f").is_err());
        assert!(state.rename("out/f", "out/g").is_err());
        assert!(state.stat("out/f").is_err());
        assert!(state.remove_tree("out/f").is_err());
        assert!(state.read("out/f").is_err());
        assert!(state.append("out/f", b"ours").is_err());
        for access in [OFlags::RDONLY, OFlags::WRONLY | OFlags::CREATE] {
            assert!(state.open_step_by_step("out/f", access, FILE_MODE).is_err());
        }
        assert_eq!(fs_err::read(dir.path().join("outside/f")).unwrap(), b"theirs");
    }

    #[test]
    fn a_file_is_found_step_by_step_too() {
        let (_dir, state) = linked();
        state.append("a/b/c", b"x\n").unwrap();
        let file = state
            .open_step_by_step("a/b/c", OFlags::RDONLY, Mode::empty())
            .unwrap();
        assert_eq!(read_tail_of(file.as_fd(), 10).unwrap(), (b"x\n".to_vec(), true));
    }

    #[test]
    fn a_tree_goes_and_the_targets_of_its_links_stay() {
        let (dir, state) = linked();
        state.append("session/s/episodes/e", b"x").unwrap();
        symlink("../../../outside", state.path().join("session/s/link")).unwrap();
        state.remove_tree("session/s").unwrap();
        state.remove_tree("session/missing").unwrap();
        state.remove_tree("out").unwrap();
        assert!(!state.exists("session/s") && !state.exists("out"));
        assert_eq!(fs_err::read(dir.path().join("outside/f")).unwrap(), b"theirs");
    }
}
