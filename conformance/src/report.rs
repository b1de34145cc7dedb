//! What came of the scenarios, as a table for people or as JSON for programs.

use serde_json::{Value, json};

use crate::cm::Figure;
use crate::deviation::Deviation;
use crate::runner::Cell;

const NAME_WIDTH: usize = 28;
const ROUTE_WIDTH: usize = 12;
const CELL_WIDTH: usize = 18;

/// The head of the table.
pub fn head(directions: &[String]) -> String {
    let columns: Vec<String> = directions.iter().map(|name| format!("{name:<CELL_WIDTH$}")).collect();
    format!("{:<NAME_WIDTH$}{:<ROUTE_WIDTH$}{}rxe deviates", "scenario", "route", columns.concat())
}

/// One row: the same scenario in each direction, and where rdma_rxe was expected to differ from the specification;
/// reasons of failures follow on lines of their own.
pub fn row(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let columns: Vec<String> = cells.iter().map(|cell| format!("{:<CELL_WIDTH$}", outcome(cell))).collect();
    let (name, route) = (&first.scenario, &first.route);
    let mut text =
        format!("{name:<NAME_WIDTH$}{route:<ROUTE_WIDTH$}{}{}", columns.concat(), deviations(cells));
    text.truncate(text.trim_end().len());
    for cell in cells {
        if let Some(reason) = &cell.failure {
            text += &format!("\n    {}: {reason}", cell.direction);
        }
    }
    text
}

/// Numbers and words of the deviations in any of the cells.
fn deviations(cells: &[Cell]) -> String {
    let mut met: Vec<&Deviation> = cells.iter().flat_map(|cell| cell.deviations.iter().copied()).collect();
    met.sort_by_key(|deviation| deviation.number);
    met.dedup();
    met.iter()
        .map(|deviation| format!("{} {}", deviation.number, deviation.words))
        .collect::<Vec<_>>()
        .join("; ")
}

fn outcome(cell: &Cell) -> String {
    let verdict = if cell.failure.is_none() { "ok" } else { "FAILED" };
    format!("{verdict:<6}{:>6} ms", cell.time.as_millis())
}

/// The closing line.
pub fn closing(cells: &[Cell]) -> String {
    let failed = failed(cells);
    format!("{} passed, {failed} failed", cells.len() - failed)
}

/// How many cells failed.
pub fn failed(cells: &[Cell]) -> usize {
    cells.iter().filter(|cell| cell.failure.is_some()).count()
}

/// Everything as one JSON object.
pub fn json(cells: &[Cell], figures: &[Figure]) -> Value {
    let failed = failed(cells);
    let list: Vec<Value> = cells.iter().map(entry).collect();
    json!({ "passed": cells.len() - failed, "failed": failed, "cells": list, "figures": figures })
}

fn entry(cell: &Cell) -> Value {
    json!({
        "scenario": cell.scenario,
        "route": cell.route,
        "direction": cell.direction,
        "milliseconds": cell.time.as_millis() as u64,
        "failure": cell.failure,
        "rxe_deviates": cell.deviations.iter().map(|deviation| entry_of(deviation)).collect::<Vec<_>>(),
    })
}

fn entry_of(deviation: &Deviation) -> Value {
    json!({ "number": deviation.number, "words": deviation.words })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cell(failure: Option<&str>) -> Cell {
        Cell {
            scenario: "write/1".into(),
            route: "IPv4 1024".into(),
            direction: "a to b".into(),
            time: Duration::from_millis(5),
            failure: failure.map(str::to_owned),
            deviations: Vec::new(),
        }
    }

    #[test]
    fn a_failed_cell_gives_its_reason_and_counts() {
        let cells = [cell(None), cell(Some("byte 3 is wrong"))];
        let text = row(&cells);
        assert!(text.contains("ok") && text.contains("FAILED") && text.contains("byte 3 is wrong"), "{text}");
        assert_eq!(closing(&cells), "1 passed, 1 failed");
        assert_eq!(json(&cells, &[])["failed"], 1);
    }

    #[test]
    fn a_deviation_is_named_once_a_row_with_its_number() {
        let deviating = Cell { deviations: vec![&crate::deviation::SHORT_RECEIVE], ..cell(None) };
        let cells = [deviating.clone(), deviating];
        let text = row(&cells);
        assert_eq!(text.matches("3 SEND longer than the receive").count(), 1, "{text}");
        assert_eq!(json(&cells, &[])["cells"][0]["rxe_deviates"][0]["number"], 3);
    }

    #[test]
    fn columns_line_up_with_the_head() {
        let head = head(&["a to b".into(), "b to a".into()]);
        let row = row(&[cell(None), cell(None)]);
        assert_eq!(head.find("b to a"), row.rfind("ok"));
    }
}
