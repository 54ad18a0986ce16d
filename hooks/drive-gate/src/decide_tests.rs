//! Every combination, against the table of `docs/gate.md`.

use super::*;
use crate::park::Marks;
use crate::way_out::WayOut;
use crate::wording;

const DOC: &str = include_str!("../../../docs/gate.md");

/// The last messages that tell the rows apart.
const MESSAGES: [Option<&str>; 10] = [
    None,
    Some("done for now"),
    Some("WAITING ON nobody"),
    Some("WAITING ON hard"),
    Some("WAITING ON soft"),
    Some("WAITING ON nobody\nWAITING ON soft"),
    Some("GOAL: 2 of 5"),
    Some("GOAL: 0 of 0"),
    Some("GOAL: 5 of 5"),
    Some("WAITING ON nobody\nGOAL: 2 of 5"),
];

fn goals() -> [Goal; 5] {
    [
        Goal::None,
        Goal::Open {
            text: "ship it".into(),
            revision: 3,
        },
        Goal::Paused,
        Goal::Done,
        Goal::Unreadable("torn".into()),
    ]
}

fn blocks() -> [Vec<Block>; 4] {
    let block = |id: &str| Block {
        id: id.into(),
        is_hard: id == "hard",
    };
    [
        vec![],
        vec![block("hard")],
        vec![block("soft")],
        vec![block("hard"), block("soft")],
    ]
}

/// Latches around the parked state of the world they are put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatchCase {
    Empty,
    HeldSame,
    HeldOtherEpisode,
    HeldOtherRevision,
    HeldOtherBlocks,
    NoticedSame,
    NoticedOtherEpisode,
    Unreadable,
}

const LATCHES: [LatchCase; 8] = [
    LatchCase::Empty,
    LatchCase::HeldSame,
    LatchCase::HeldOtherEpisode,
    LatchCase::HeldOtherRevision,
    LatchCase::HeldOtherBlocks,
    LatchCase::NoticedSame,
    LatchCase::NoticedOtherEpisode,
    LatchCase::Unreadable,
];

fn latch(case: LatchCase, goal: &Goal, blocks: &[Block]) -> Latch {
    let same = Parked {
        episode: "e".into(),
        goal_revision: matches!(goal, Goal::Open { .. }).then_some(3),
        blocks: blocks.iter().map(|block| block.id.clone()).collect(),
    };
    let other_episode = Parked {
        episode: "before".into(),
        ..same.clone()
    };
    let held = |parked| Latch::Known {
        held: Some(parked),
        noticed: None,
    };
    let noticed = |parked| Latch::Known {
        held: None,
        noticed: Some(parked),
    };
    match case {
        LatchCase::Empty => Latch::Known {
            held: None,
            noticed: None,
        },
        LatchCase::HeldSame => held(same),
        LatchCase::HeldOtherEpisode => held(other_episode),
        LatchCase::HeldOtherRevision => held(Parked {
            goal_revision: Some(2),
            ..same
        }),
        LatchCase::HeldOtherBlocks => held(Parked {
            blocks: vec!["gone".into()],
            ..same
        }),
        LatchCase::NoticedSame => noticed(same),
        LatchCase::NoticedOtherEpisode => noticed(other_episode),
        LatchCase::Unreadable => Latch::Unreadable("torn".into()),
    }
}

/// The table's rows by number: verdict, reason, said.
fn table() -> Vec<[&'static str; 3]> {
    let rows = DOC.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
        cells.first()?.parse::<usize>().ok()?;
        let said = cells.get(4)?.trim_end_matches(" |");
        Some([*cells.get(2)?, *cells.get(3)?, said])
    });
    rows.collect()
}

/// Which rows of the table apply, restated from what the table says.
fn applies(row: usize, world: &World, message: Option<&str>, latch: LatchCase) -> bool {
    let says = |part: &str| message.is_some_and(|message| message.contains(part));
    let has = |id: &str| world.blocks.iter().any(|block| block.id == id);
    match row {
        1 => world.switch == Switch::Off,
        2 => world.switch == Switch::Paused,
        3 => matches!(world.goal, Goal::Unreadable(_)),
        4 => !matches!(world.goal, Goal::Open { .. }) && has("hard"),
        5 => world.goal == Goal::None,
        6 => world.goal == Goal::Paused,
        7 => world.goal == Goal::Done,
        8 => world.has_running_task,
        9 => world.has_armed_wake,
        10 => message.is_none(),
        11 => says("GOAL: 5 of 5"),
        12 => ["hard", "soft"]
            .iter()
            .any(|id| says(&format!("WAITING ON {id}")) && has(id)),
        13 => world.episode.is_none(),
        14 => latch == LatchCase::Unreadable,
        15 => latch == LatchCase::HeldSame,
        16 => says("WAITING ON"),
        17 => says("GOAL:"),
        18 => true,
        _ => false,
    }
}

fn check(world: &World, message: Option<&str>, latch: LatchCase, table: &[[&str; 3]]) {
    let row = (1..=table.len())
        .find(|row| applies(*row, world, message, latch))
        .unwrap();
    let [verdict, reason, said] = table[row - 1];
    let is_told_before = latch == LatchCase::NoticedSame && world.episode.is_some();
    let seen = match decide(world) {
        Decision::Allow(why, None) => ("allow", why.words(), "-"),
        Decision::Allow(why, Some(Notice::Blocks(_))) => ("allow", why.words(), "notice once"),
        Decision::Allow(why, Some(Notice::Unreadable(..))) => ("allow", why.words(), "notice"),
        Decision::Hold(missing) => ("hold", missing.words(), "hold"),
    };
    let said = if said == "notice once" && is_told_before {
        "-"
    } else {
        said
    };
    assert_eq!(
        seen,
        (verdict, reason, said),
        "row {row}: {message:?} {latch:?} {world:?}"
    );
}

#[test]
fn every_combination_is_decided_as_the_table_says() {
    let table = table();
    assert_eq!(table.len(), 18);
    for switch in [Switch::On, Switch::Off, Switch::Paused] {
        for goal in goals() {
            for blocks in blocks() {
                for message in MESSAGES {
                    for flags in 0..8_u8 {
                        for case in LATCHES {
                            let world = World {
                                switch,
                                goal: goal.clone(),
                                blocks: blocks.clone(),
                                has_running_task: flags & 1 != 0,
                                has_armed_wake: flags & 2 != 0,
                                marks: message.map(Marks::read),
                                episode: (flags & 4 != 0).then(|| "e".to_owned()),
                                latch: latch(case, &goal, &blocks),
                            };
                            check(&world, message, case, &table);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_episode_is_the_last_prompt_of_a_person_where_that_is_known() {
    for human_prompt in [None, Some("human")] {
        for has_lease in [false, true] {
            for held in [None, Some("held")] {
                for prompt in [None, Some("turn")] {
                    for stop_hook_active in [None, Some(false), Some(true)] {
                        let turn = if stop_hook_active == Some(false) {
                            prompt
                        } else {
                            None
                        };
                        let expected = match (human_prompt, has_lease, held) {
                            (Some(_), ..) => human_prompt,
                            (None, true, Some(_)) => held,
                            (None, ..) => turn,
                        };
                        let clues = Clues {
                            human_prompt,
                            has_lease,
                            held,
                            prompt,
                            stop_hook_active,
                        };
                        assert_eq!(episode(clues), expected, "{clues:?}");
                    }
                }
            }
        }
    }
}

/// A text of the docs with its placeholders filled in.
fn documented(first_words: &str, fill: &[(&str, &str)]) -> String {
    let start = DOC.find(first_words).unwrap();
    let text = DOC[start..].split("\n```").next().unwrap();
    fill.iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn way_out(program: &str, options: &str) -> WayOut {
    WayOut {
        program: program.to_owned(),
        options: options.to_owned(),
    }
}

fn documented_missing(row: u8) -> &'static str {
    let start = format!("| row {row} | ");
    let line = DOC.lines().find_map(|line| line.strip_prefix(start.as_str()));
    line.unwrap().strip_suffix(" |").unwrap()
}

#[test]
fn a_hold_reads_word_for_word_as_documented() {
    let cases = [
        (16, Missing::Unknown("x-1".into())),
        (17, Missing::Progress(Progress { reached: 2, of: 5 })),
        (18, Missing::Park),
    ];
    for (row, missing) in cases {
        let why = documented_missing(row)
            .replacen("<id>", "x-1", 1)
            .replace("<n>", "2")
            .replace("<m>", "5");
        let text = documented(
            "rungs: the goal of this session is still open",
            &[
                ("<missing>", &why),
                ("<goal>", "ship it"),
                ("<blocks>", "b-1, b-2"),
            ],
        );
        let blocks = ["b-1".to_owned(), "b-2".to_owned()];
        assert_eq!(
            wording::hold(" ship\n it ", &missing, &blocks, &way_out("rungs", "")),
            text
        );
        let without: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("Open blocks"))
            .collect();
        assert_eq!(
            wording::hold("ship it", &missing, &[], &way_out("rungs", "")),
            without.join("\n")
        );
    }
}

#[test]
fn a_hold_prescribes_nothing_that_can_do_harm() {
    let text = wording::hold("x", &Missing::Park, &[], &way_out("/p/rungs", " --root /r"));
    for harmful in ["compact", "clear", "kill", "restart", "force"] {
        assert!(!text.contains(harmful), "{harmful}");
    }
    assert!(text.contains("`/p/rungs goal done --root /r`"));
}

#[test]
fn long_goals_and_lists_are_cut() {
    let text = wording::hold(&"é".repeat(4000), &Missing::Park, &[], &way_out("rungs", ""));
    assert!(text.contains(&format!("{}…\n", "é".repeat(300))), "{text}");
    let many: Vec<String> = (0..12).map(|n| format!("b{n}")).collect();
    assert!(wording::notice(&Notice::Blocks(many)).contains("b9 and 2 more"));
}

#[test]
fn a_notice_reads_word_for_word_as_documented() {
    let texts = documented(
        "rungs: <count> block(s)",
        &[("<count>", "1"), ("<blocks>", "b-1"), ("<why>", "torn")],
    );
    let said = [
        Notice::Blocks(vec!["b-1".into()]),
        Notice::Unreadable("goal", "torn".into()),
        Notice::Unreadable("latch", "torn".into()),
    ];
    let said: Vec<String> = said.iter().map(wording::notice).collect();
    assert_eq!(said.join("\n"), texts);
}
