//! `rungs doctor`: what fails silently, each with its fix.
//!
//! A wrong hook path, a second settings level, a watchdog variable: the client
//! says nothing, and the suite just does not act. Every finding says what was
//! looked at; what could not be read is "not looked", never "ok".

mod checkout;
mod client;
mod environment;
mod hooks;
mod levels;
mod root;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use shared::edge::clock;
use shared::pure::time_text;

use crate::out;
use crate::places::{PlaceOptions, Places};
use levels::Levels;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    places: PlaceOptions,
    /// The project whose settings levels are looked at
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// The settings that an administrator manages [default: the system's]
    #[arg(long, value_name = "FILE")]
    managed_settings: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// All defaults but the places.
    pub(crate) fn of(places: PlaceOptions) -> Self {
        Self {
            places,
            project: PathBuf::from("."),
            managed_settings: None,
            json: false,
        }
    }
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Wrong,
    NotLooked,
}

/// One check's outcome.
#[derive(Debug, Clone)]
struct Finding {
    check: &'static str,
    level: Level,
    /// What was looked at, and what was seen.
    says: String,
    /// The way out; only where something is wrong or could not be looked at.
    fix: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, &says.into(), None)
    }

    fn wrong(check: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(check, Level::Wrong, &says.into(), Some(fix.into()))
    }

    fn not_looked(check: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(check, Level::NotLooked, &says.into(), Some(fix.into()))
    }

    fn new(check: &'static str, level: Level, says: &str, fix: Option<String>) -> Self {
        Self {
            check,
            level,
            says: out::bounded(says, 2000),
            fix,
        }
    }
}

/// What all checks look at.
struct Looked {
    places: Places,
    levels: Levels,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let places = args.places.places()?;
    let project = std::path::absolute(&args.project)?;
    let managed = args
        .managed_settings
        .unwrap_or_else(|| PathBuf::from(levels::MANAGED_SETTINGS));
    let looked = Looked {
        levels: Levels::read(&places, &project, &managed),
        places,
    };
    let mut findings = Vec::new();
    findings.extend(looked.levels.findings());
    findings.extend(hooks::check(&looked));
    findings.extend(environment::check(&looked));
    findings.extend(client::check());
    findings.extend(root::check(&looked));
    findings.push(checkout::check(&looked.places.claude_dir));
    let count = |level| findings.iter().filter(|f| f.level == level).count();
    let (ok, wrong, not_looked) = (count(Level::Ok), count(Level::Wrong), count(Level::NotLooked));
    if args.json {
        out::json(&json!({
            "format": 1,
            "at": time_text::rfc3339_ms(clock::now_ms()),
            "ok": ok,
            "wrong": wrong,
            "not_looked": not_looked,
            "findings": findings.iter().map(as_json).collect::<Vec<_>>(),
        }));
    } else {
        for finding in &findings {
            print(finding);
        }
        out::line(&format!("{ok} ok, {wrong} wrong, {not_looked} not looked at."));
        out::line("Not visible from here: sessions started with --bare, which run no hook.");
    }
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Wrong => "WRONG",
        Level::NotLooked => "not looked",
    }
}

fn print(finding: &Finding) {
    out::line(&format!(
        "{:<10} {}: {}",
        word(finding.level),
        finding.check,
        finding.says
    ));
    if let Some(fix) = &finding.fix {
        out::line(&format!("{:<10} fix: {fix}", ""));
    }
}

fn as_json(finding: &Finding) -> serde_json::Value {
    json!({
        "check": finding.check,
        "level": word(finding.level).to_lowercase(),
        "says": finding.says,
        "fix": finding.fix,
    })
}
