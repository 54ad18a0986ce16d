//! The wait after a transient failure, and the wake at its end.
//!
//! Both heal hooks come here: wedge-heal for a service that fails, walled-heal
//! for a throttle. The hook sleeps in place, holding no lock; it looks again and
//! again whether the session still stands where the failed turn left it, and
//! ends quietly if not. Tries are counted since the last turn that ended well, so
//! a recovery clears them.

use crate::hook::{Answer, Call, WORKING_PHASE_S};
use crate::pure::backoff::{self, Backoff};
use crate::pure::outage::{Next, Probe, Waiter};

use super::config::Config;
use super::episode::Episode;
use super::proc::ProcessId;
use super::wedge_file::{self, Act};
use super::{clock, deadline, env, lease_file, outage, recheck};

/// Waits until it is this session's moment, then gives the wake; or gives
/// nothing where the session went on, was closed, or was taken over by a person.
///
/// `episode` is claimed by the caller and gets intent and outcome here; `what`
/// names the failure for the woken session, as in "the service was overloaded".
/// The session must be one that a wake can reach.
///
/// # Errors
/// The tries can't be counted, or the episode can't be written: then nothing is
/// done.
pub fn wait_and_decide(
    call: &Call,
    episode: &mut Episode,
    config: &Config,
    what: &str,
) -> anyhow::Result<Answer> {
    let backoff = Backoff {
        min_ms: config.backoff_s_min.saturating_mul(1000),
        max_ms: config.backoff_s_max.saturating_mul(1000),
    };
    let tries = tries_since_good_stop(call)?;
    let seed = backoff::seed(&[
        call.sid.as_str(),
        call.payload.prompt_id.as_deref().unwrap_or_default(),
    ]);
    let after = |ms: u64| call.started.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
    let waiter = Waiter {
        failed_at: call.started,
        due_at: after(backoff.wait_ms(tries, seed)),
        latest_at: after(backoff.wait_ms(u32::MAX, seed)),
        spread_ms: after(backoff.spread_ms(seed)) - call.started,
    };
    let plan = format!(
        "{what}; try {}: due in {} s, at the latest in {} s",
        tries + 1,
        (waiter.due_at - call.started) / 1000,
        (waiter.latest_at - call.started) / 1000
    );
    episode.intend("wait", &plan)?;
    call.log(&format!("waits: {plan}"));

    deadline::rearm(0);
    let moment = sleep_until_moment(call, waiter, backoff);
    deadline::rearm(WORKING_PHASE_S);
    let now = clock::now_ms();
    let how = match moment {
        Ok(how) => how,
        Err(why) => {
            call.log(&format!("left alone: {why}"));
            episode.finish("stale", &why, now)?;
            return Ok(Answer::Nothing);
        }
    };
    wedge_file::spend(call.state, &call.sid, Act::TransientWake, &[], now, None)?;
    let what_was = format!("{what}; {how} after {} s", (now - call.started) / 1000);
    episode.finish("woken", &what_was, now)?;
    call.log(&format!("woken: {what_was}"));
    Ok(Answer::Two(recheck::stamped_by(
        "rungs",
        &format!(
            "the last turn ended early: {what}. It may have passed by now. \
             Go on with the work where it stopped."
        ),
    )))
}

/// How many wakes after transient failures there were since the last turn that
/// ended well.
fn tries_since_good_stop(call: &Call) -> anyhow::Result<u32> {
    let wedge = wedge_file::read(call.state, &call.sid)?;
    let lease = lease_file::read(call.state, &call.sid)?;
    let good = lease.and_then(|lease| lease.last_stop_at).unwrap_or(i64::MIN);
    let tries = wedge
        .transient_wakes
        .acts()
        .iter()
        .filter(|at| **at > good)
        .count();
    Ok(u32::try_from(tries).unwrap_or(u32::MAX))
}

/// Sleeps in naps; the error is why the session is left alone.
fn sleep_until_moment(call: &Call, waiter: Waiter, backoff: Backoff) -> Result<&'static str, String> {
    let nap_ms_max = (backoff.min_ms / 6).clamp(50, 5000);
    let as_probe = probe(call);
    let mut is_outage_readable = true;
    let mut note = |why: &anyhow::Error| {
        if std::mem::take(&mut is_outage_readable) {
            call.log(&format!("waits alone: {why:#}"));
        }
    };
    if let Err(why) = outage::note_failure(call.state, &call.sid, call.started) {
        note(&why);
    }
    let mut slept: i64 = 0;
    loop {
        // A clock set back must not stretch the wait.
        let now = clock::now_ms().max(call.started.saturating_add(slept));
        recheck::still_ours(call)?;
        let next = outage::ask(call.state, waiter, &as_probe, now, backoff).unwrap_or_else(|why| {
            note(&why);
            if now >= waiter.due_at {
                Next::Go
            } else {
                Next::Wait
            }
        });
        match next {
            Next::Go => return Ok("woken"),
            Next::GoAsProbe => return Ok("woken as the first to try"),
            Next::Wait => {}
        }
        let until_due = u64::try_from(waiter.due_at - now).unwrap_or(nap_ms_max);
        let nap = until_due.clamp(20, nap_ms_max);
        clock::sleep_ms(nap);
        slept = slept.saturating_add(i64::try_from(nap).unwrap_or(0));
    }
}

fn probe(call: &Call) -> Probe {
    let pid = env::text(env::CLAUDE_PID).and_then(|text| text.parse().ok());
    let process = pid.and_then(ProcessId::of);
    Probe {
        sid: call.sid.as_str().to_owned(),
        pid: process.map_or(0, |process| process.pid),
        start: process.map_or(0, |process| process.start),
        transcript: call.payload.transcript_path.as_deref().map(str::to_owned),
        at: 0,
    }
}
