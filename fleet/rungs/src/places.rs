//! Where things are: options, then environment, then defaults.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use shared::edge::env;
use shared::edge::settings_file;
use shared::edge::state::State;

/// The state root, as an option.
#[derive(Args, Clone)]
pub(crate) struct RootOption {
    /// State root [default: `$RUNGS_HOME` or `~/.rungs`]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// All three places, as options.
#[derive(Args, Clone)]
pub(crate) struct PlaceOptions {
    /// The client's folder [default: `$CLAUDE_CONFIG_DIR` or `~/.claude`]
    #[arg(long, value_name = "DIR")]
    claude_dir: Option<PathBuf>,
    /// Where the copies of the programs go [default: where they are installed, else `~/.local/share/rungs`]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    #[command(flatten)]
    root: RootOption,
}

/// The places, absolute.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The client's folder.
    pub(crate) claude_dir: PathBuf,
    /// Where the copies of the programs are.
    pub(crate) prefix: PathBuf,
    /// The state root.
    pub(crate) root: PathBuf,
}

impl RootOption {
    /// The root's path, absolute.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let path = self.root.clone().or_else(State::default_path);
        absolute(&path.context("HOME is not set; name the state root with --root")?)
    }

    /// The open root, if there is one; never made here.
    pub(crate) fn open_existing(&self) -> Result<Option<State>> {
        open_existing(&self.path()?)
    }
}

impl PlaceOptions {
    /// The three paths, absolute.
    pub(crate) fn places(&self) -> Result<Places> {
        let claude_dir = self.claude_dir.clone().or_else(env::claude_dir);
        let root = self.root.path()?;
        let prefix = self
            .prefix
            .clone()
            .or_else(|| recorded_prefix(&root))
            .or_else(|| Some(env::path(env::HOME)?.join(".local/share/rungs")));
        Ok(Places {
            claude_dir: absolute(
                &claude_dir.context("HOME is not set; name the client's folder with --claude-dir")?,
            )?,
            prefix: absolute(&prefix.context("HOME is not set; name the prefix with --prefix")?)?,
            root,
        })
    }
}

impl PlaceOptions {
    /// The options as given, for a command that a person can copy; a prefix is
    /// remembered and left out.
    pub(crate) fn to_copy(&self, places: &Places) -> String {
        let given = [
            ("--claude-dir", self.claude_dir.is_some(), &places.claude_dir),
            ("--root", self.root.root.is_some(), &places.root),
        ];
        let mut options = String::new();
        for (option, _, path) in given.iter().filter(|(_, is_given, _)| *is_given) {
            let quoted = path.to_string_lossy().replace('\'', "'\\''");
            options.push_str(&[" ", option, " '", &quoted, "'"].concat());
        }
        options
    }
}

impl Places {
    /// The user's settings file.
    pub(crate) fn settings(&self) -> PathBuf {
        self.claude_dir.join("settings.json")
    }

    /// Where the programs are.
    pub(crate) fn bin(&self) -> PathBuf {
        self.prefix.join("bin")
    }

    /// Where the plugin's marketplace is.
    pub(crate) fn marketplace(&self) -> PathBuf {
        self.prefix.join("plugin-marketplace")
    }
}

/// The open root, or `None` where there is none yet.
pub(crate) fn open_existing(root: &Path) -> Result<Option<State>> {
    match fs_err::symlink_metadata(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
        Ok(_) => open(root).map(Some),
    }
}

/// Where the last install put the programs. A record that can't be read names
/// nothing here; whoever is about to change something reports it.
pub(crate) fn recorded_prefix(root: &Path) -> Option<PathBuf> {
    let state = open_existing(root).ok()??;
    let record = settings_file::read_record(&state).ok()?;
    record.get("prefix")?.as_str().map(PathBuf::from)
}

/// The open root, made where it is missing.
pub(crate) fn open(root: &Path) -> Result<State> {
    State::open_root(root).with_context(|| {
        format!(
            "the state root {} can't be used; name another with --root",
            root.display()
        )
    })
}

/// The git working tree that holds a path (which need not exist yet), if any.
pub(crate) fn working_tree_of(path: &Path) -> Option<PathBuf> {
    let resolved = resolve(path);
    let mut folders = resolved.ancestors();
    folders
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_path_buf)
}

/// The path with links resolved as far as it exists.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    for folder in path.ancestors() {
        if let Ok(real) = fs_err::canonicalize(folder) {
            return match path.strip_prefix(folder) {
                Ok(rest) if rest.as_os_str().is_empty() => real,
                Ok(rest) => real.join(rest),
                Err(_) => real,
            };
        }
    }
    path.to_path_buf()
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).with_context(|| format!("{} is no usable path", path.display()))?;
    if path.to_str().is_none_or(|text| text.contains(['\n', '\r'])) {
        bail!("{} is not plain UTF-8; choose another path", path.display());
    }
    // `..` would make two spellings of one place.
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            plain = resolve(&plain);
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    Ok(plain)
}
