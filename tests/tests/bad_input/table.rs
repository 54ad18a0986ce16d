//! Rows and cells, and the run of a table.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::stage::{HOOKS, Stage};

/// What a hook does with an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    /// Its work, as if nothing were wrong.
    Works,
    /// Its work, and its log says this.
    WorksAndLogs(&'static str),
    /// Nothing, and a log says this.
    Logs(&'static str),
    /// Nothing, but the person is told this (and a log says it).
    Tells(&'static str),
    /// Nothing, and nobody can be told.
    Silent,
    /// It sleeps on purpose, as a parked or waiting session does, and its log
    /// says this.
    Sleeps(&'static str),
}

/// An input: its name, how to bring it about, and what session-lease, drive-gate,
/// walled-heal and wedge-heal do then.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) prepare: Box<dyn Fn(&mut Stage) + Sync>,
    pub(crate) cells: [Cell; 4],
}

pub(crate) fn row(
    name: &'static str,
    cells: [Cell; 4],
    prepare: impl Fn(&mut Stage) + Sync + 'static,
) -> Row {
    Row {
        name,
        prepare: Box::new(prepare),
        cells,
    }
}

/// Runs every cell, the columns side by side, and tells of all that failed.
pub(crate) fn check(rows: &[Row]) {
    let column = |at: usize| {
        let mut failed = Vec::new();
        for row in rows {
            let run = AssertUnwindSafe(|| {
                let mut stage = Stage::new(HOOKS[at]);
                (row.prepare)(&mut stage);
                stage.check(row.cells[at]);
            });
            if let Err(panic) = catch_unwind(run) {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                failed.push(format!(
                    "{} / {}: {}",
                    row.name,
                    HOOKS[at].name(),
                    text.unwrap_or("a panic")
                ));
            }
        }
        failed
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let columns: Vec<_> = (0..HOOKS.len())
            .map(|at| scope.spawn(move || column(at)))
            .collect();
        columns
            .into_iter()
            .flat_map(|column| column.join().unwrap())
            .collect()
    });
    assert!(
        failed.is_empty(),
        "{} cells failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
