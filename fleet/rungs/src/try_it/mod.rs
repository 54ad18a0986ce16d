//! `rungs try`: the main job, shown. In a throw-away home a recorded wall, a
//! failed turn and a stop with an open goal go through the hook executables
//! beside this program; what each did is printed, and checked.
//!
//! The recorded payloads and transcripts are the client's own (2.1.332); ids,
//! paths and times are made to fit. The logins are made up and nothing leaves
//! the machine.

mod stage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shared::edge::spawn;
use shared::pure::settings_edit::HOOKS;

use crate::{out, programs};
use stage::{Recording, Stage};

/// Hooks end in seconds; the one that waits is told to wait one.
const LIMIT: Duration = Duration::from_secs(30);

const WALL: Recording = Recording {
    sid: "11111111-0000-4000-8000-000000000001",
    payload: include_str!("wall.json"),
    transcript: include_str!("wall.jsonl"),
};
const FAILED_TURN: Recording = Recording {
    sid: "22222222-0000-4000-8000-000000000002",
    payload: include_str!("failed_turn.json"),
    transcript: include_str!("failed_turn.jsonl"),
};
const STOP: Recording = Recording {
    sid: "33333333-0000-4000-8000-000000000003",
    payload: include_str!("stop.json"),
    transcript: "",
};

/// What goes before each of them: the session starts, a person types a prompt.
const BEFORE: [&str; 2] = [include_str!("start.json"), include_str!("prompt.json")];

#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// The folder of the hook executables [default: this program's]
    #[arg(long, value_name = "DIR")]
    bin: Option<PathBuf>,
}

/// How a hook run ended.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let bin = args.bin.map_or_else(programs::source, Ok)?;
    programs::require(&bin, HOOKS.into_iter())?;
    let stage = Stage::set(bin)?;
    out::line(&format!(
        "In a throw-away home, with the programs in {}:",
        stage.bin.display()
    ));
    let did = [wall(&stage)?, failed_turn(&stage)?, stop(&stage)?];
    let all_did = did.iter().all(|did| *did);
    out::line(if all_did {
        "All three did their job. The throw-away home is gone again."
    } else {
        "Not all did their job; see above. The throw-away home is gone again."
    });
    Ok(if all_did {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn wall(stage: &Stage) -> Result<bool> {
    out::line("1. A session hits the 5-hour limit of the account \"first\".");
    let payload = begin(stage, &WALL)?;
    let healed = hook(stage, &WALL, "walled-heal", &payload)?;
    let account = stage.account()?;
    let other = hook(stage, &WALL, "wedge-heal", &payload)?;
    let moved = account == "second" && healed.code == Some(2);
    let text = if moved {
        format!(
            "   walled-heal moved it to \"second\" and waked it after {} ms: {}",
            healed.took.as_millis(),
            quote(&healed.stderr)
        )
    } else {
        failed("walled-heal", &format!("the session is on {account:?}"), &healed)
    };
    out::line(&text);
    let stood_back = other.code == Some(0) && other.stderr.is_empty();
    out::line(&if stood_back {
        "   wedge-heal left it alone: a wall is not its job.".to_owned()
    } else {
        failed("wedge-heal", "it should have left this alone", &other)
    });
    Ok(moved && stood_back)
}

fn failed_turn(stage: &Stage) -> Result<bool> {
    out::line("2. A turn dies of a server error (500) after the client's own retries.");
    let payload = begin(stage, &FAILED_TURN)?;
    let account = stage.account()?;
    let other = hook(stage, &FAILED_TURN, "walled-heal", &payload)?;
    let healed = hook(stage, &FAILED_TURN, "wedge-heal", &payload)?;
    let waked = healed.code == Some(2) && !healed.stderr.trim().is_empty();
    out::line(&if waked {
        format!(
            "   wedge-heal waited {:.1} s (here; 30 s and more in earnest) and waked it: {}",
            healed.took.as_secs_f32(),
            quote(&healed.stderr)
        )
    } else {
        failed("wedge-heal", "it should have waked the session", &healed)
    });
    let stayed = stage.account()? == account && other.code == Some(0);
    out::line(&if stayed {
        "   walled-heal moved nothing: a server error is no wall.".to_owned()
    } else {
        failed("walled-heal", "it should have left this alone", &other)
    });
    Ok(waked && stayed)
}

fn stop(stage: &Stage) -> Result<bool> {
    out::line("3. A session with an open goal is about to stop without a word.");
    let payload = begin(stage, &STOP)?;
    let mut command = spawn::command(std::env::current_exe()?);
    stage.environment(&mut command, &STOP);
    command.args(["goal", "set", "--root"]).arg(&stage.root).args([
        "--sid",
        STOP.sid,
        "The report is written",
    ]);
    let goal = spawn::run(command, None, LIMIT).context("rungs goal can't be started")?;
    if !goal.is_success() {
        out::line(&format!(
            "   no goal could be set: {}",
            quote(&goal.stderr_text())
        ));
        return Ok(false);
    }
    let held = hook(stage, &STOP, "drive-gate", &payload)?;
    let answer: serde_json::Value = serde_json::from_str(&held.stdout).unwrap_or_default();
    let reason = answer.get("reason").and_then(serde_json::Value::as_str);
    let is_block = answer.get("decision").and_then(serde_json::Value::as_str) == Some("block");
    let first = matches!((held.code, is_block, reason), (Some(0), true, Some(_)));
    out::line(&if first {
        format!("   drive-gate held it: {}", quote(reason.unwrap_or_default()))
    } else {
        failed("drive-gate", "it should have held the session", &held)
    });
    // The turn that the refusal began ends; the client says so in the payload.
    let payload = payload.replace("\"stop_hook_active\":false", "\"stop_hook_active\":true");
    let again = hook(stage, &STOP, "drive-gate", &payload)?;
    let quiet = again.code == Some(0) && again.stdout.trim().is_empty();
    out::line(&if quiet {
        "   At the second stop it is quiet: once an episode.".to_owned()
    } else {
        failed("drive-gate", "the second stop should be let through", &again)
    });
    Ok(first && quiet)
}

/// The session's start and its prompt go through session-lease; then the payload.
fn begin(stage: &Stage, recording: &Recording) -> Result<String> {
    for before in BEFORE {
        let payload = stage.payload(recording, before)?;
        let ran = hook(stage, recording, "session-lease", &payload)?;
        if ran.code != Some(0) {
            out::line(&failed(
                "session-lease",
                "it should always let things through",
                &ran,
            ));
        }
    }
    stage.transcript(recording)?;
    stage.payload(recording, recording.payload)
}

fn hook(stage: &Stage, recording: &Recording, name: &str, payload: &str) -> Result<Ran> {
    stage.idle(recording)?;
    let mut command = spawn::command(stage.bin.join(name));
    stage.environment(&mut command, recording);
    command.arg("--root").arg(&stage.root);
    let started = Instant::now();
    let output = spawn::run(command, Some(payload.as_bytes()), LIMIT)
        .with_context(|| format!("{name} can't be started"))?;
    Ok(Ran {
        took: started.elapsed(),
        code: output.status.and_then(|status| status.code()),
        stdout: output.stdout_text(),
        stderr: output.stderr_text(),
    })
}

fn failed(name: &str, what: &str, ran: &Ran) -> String {
    let code = ran.code.map_or_else(
        || format!("no exit within {} s", LIMIT.as_secs()),
        |code| format!("exit code {code}"),
    );
    let said = if ran.stderr.is_empty() {
        &ran.stdout
    } else {
        &ran.stderr
    };
    format!("   FAILED: {name}: {what} ({code}, it said {})", quote(said))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", out::bounded(text.trim(), 300))
}
