//! `rungs diagnose`: the classifier's command line. It reads and decides, and
//! changes nothing.
//!
//! Exit 0 with any verdict, 1 for input that can't be read, 2 for misuse. The
//! JSON object is a stable interface: fields are added, never renamed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use shared::edge::{clock, transcript_file};
use shared::pure::diagnosis::{Diagnosis, Evidence, Heal, Verdict, Window, diagnose};
use shared::pure::hook_payload::Payload;
use shared::pure::observed::Observed;
use shared::pure::reset_time;

use crate::out;

/// More than a hook payload ever held.
const INPUT_BYTES_MAX: usize = 16 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The session's transcript (JSON lines); only its end is read
    #[arg(long, value_name = "FILE")]
    transcript: PathBuf,
    /// What a hook was told (one JSON object)
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// What is known of the process (one JSON object)
    #[arg(long, value_name = "FILE")]
    observed: Option<PathBuf>,
    /// The time to judge at, instead of the clock's
    #[arg(long, value_name = "RFC3339", value_parser = instant)]
    now: Option<i64>,
    /// The machine's time zone, for limits that name none (default: as observed, else UTC)
    #[arg(long, value_name = "IANA", value_parser = zone)]
    zone: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn instant(text: &str) -> Result<i64, String> {
    reset_time::from_rfc3339(text).ok_or_else(|| "expected a time such as 2026-11-30T21:57:00Z".to_owned())
}

fn zone(name: &str) -> Result<String, String> {
    if reset_time::is_zone(name) {
        return Ok(name.to_owned());
    }
    Err("not a known time zone; expected a name such as Europe/Berlin".to_owned())
}

/// The stable interface.
#[derive(Serialize)]
struct Answer<'d> {
    verdict: Verdict,
    window: Option<Window>,
    resets_at: Option<String>,
    heal: Heal,
    kind: &'d str,
    fingerprint: Option<&'d str>,
    recipe: Option<&'d str>,
    why: &'d str,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let transcript = transcript_file::read_until_seen(&args.transcript)?;
    let tail = transcript.tail();
    let payload = args.payload.as_deref().map(read).transpose()?;
    let payload = match (&payload, &args.payload) {
        (Some(bytes), Some(path)) if !is_null(bytes) => {
            Some(Payload::parse(bytes).with_context(|| format!("{} is no hook payload", path.display()))?)
        }
        _ => None,
    };
    let observed = args.observed.as_deref().map(observed).transpose()?.flatten();
    let diagnosis = diagnose(Evidence {
        payload: payload.as_ref(),
        tail: &tail,
        observed: observed.as_ref(),
        now_ms: args.now.unwrap_or_else(clock::now_ms),
        zone: args.zone.as_deref(),
    });
    print(&diagnosis, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let (bytes, is_whole) = transcript_file::read_tail(path, INPUT_BYTES_MAX)?;
    anyhow::ensure!(
        is_whole,
        "{}: larger than {INPUT_BYTES_MAX} bytes",
        path.display()
    );
    Ok(bytes)
}

/// `null` says that there is none.
fn is_null(bytes: &[u8]) -> bool {
    bytes.trim_ascii() == b"null"
}

fn observed(path: &Path) -> anyhow::Result<Option<Observed>> {
    let bytes = read(path)?;
    // serde would also take a list for a struct.
    anyhow::ensure!(
        !bytes.trim_ascii().starts_with(b"["),
        "{} is a list, no object of readings",
        path.display()
    );
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no object of readings", path.display()))
}

fn print(diagnosis: &Diagnosis, json: bool) -> anyhow::Result<()> {
    let resets_at = diagnosis.resets_at.and_then(reset_time::to_rfc3339);
    if json {
        let answer = Answer {
            verdict: diagnosis.verdict,
            window: diagnosis.window,
            resets_at,
            heal: diagnosis.heal,
            kind: diagnosis.kind,
            fingerprint: diagnosis.fingerprint.as_deref(),
            recipe: diagnosis.recipe,
            why: &diagnosis.why,
        };
        out::line(&serde_json::to_string(&answer)?);
        return Ok(());
    }
    out::line(&format!("{} ({})", diagnosis.verdict, diagnosis.kind));
    out::line(&format!("  why     {}", diagnosis.why));
    if let Some(window) = diagnosis.window {
        out::line(&format!("  window  {window}"));
    }
    if let Some(resets_at) = resets_at {
        out::line(&format!("  resets  {resets_at}"));
    }
    out::line(&format!("  heal    {}", diagnosis.heal));
    if let Some(recipe) = diagnosis.recipe {
        out::line(&format!("  recipe  {recipe}"));
    }
    Ok(())
}
