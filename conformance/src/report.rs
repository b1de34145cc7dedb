//! What came of the scenarios, as a table for people or as JSON for programs.

use serde_json::{Value, json};

use crate::runner::Cell;

const NAME_WIDTH: usize = 26;
const ROUTE_WIDTH: usize = 12;
const CELL_WIDTH: usize = 18;

/// The head of the table.
pub fn head(directions: &[String]) -> String {
    let columns: Vec<String> = directions.iter().map(|name| format!("{name:<CELL_WIDTH$}")).collect();
    format!("{:<NAME_WIDTH$}{:<ROUTE_WIDTH$}{}", "scenario", "route", columns.concat()).trim_end().to_owned()
}

/// One row: the same scenario in each direction; reasons of failures follow on lines of their own.
pub fn row(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let columns: Vec<String> = cells.iter().map(|cell| format!("{:<CELL_WIDTH$}", outcome(cell))).collect();
    let mut text =
        format!("{:<NAME_WIDTH$}{:<ROUTE_WIDTH$}{}", first.scenario, first.route, columns.concat());
    text.truncate(text.trim_end().len());
    for cell in cells {
        if let Some(reason) = &cell.failure {
            text += &format!("\n    {}: {reason}", cell.direction);
        }
    }
    text
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
pub fn json(cells: &[Cell]) -> Value {
    let failed = failed(cells);
    let list: Vec<Value> = cells.iter().map(entry).collect();
    json!({ "passed": cells.len() - failed, "failed": failed, "cells": list })
}

fn entry(cell: &Cell) -> Value {
    json!({
        "scenario": cell.scenario,
        "route": cell.route,
        "direction": cell.direction,
        "milliseconds": cell.time.as_millis() as u64,
        "failure": cell.failure,
    })
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
        }
    }

    #[test]
    fn a_failed_cell_gives_its_reason_and_counts() {
        let cells = [cell(None), cell(Some("byte 3 is wrong"))];
        let text = row(&cells);
        assert!(text.contains("ok") && text.contains("FAILED") && text.contains("byte 3 is wrong"), "{text}");
        assert_eq!(closing(&cells), "1 passed, 1 failed");
        assert_eq!(json(&cells)["failed"], 1);
    }

    #[test]
    fn columns_line_up_with_the_head() {
        let head = head(&["a to b".into(), "b to a".into()]);
        let row = row(&[cell(None), cell(None)]);
        assert_eq!(head.find("b to a"), row.rfind("ok"));
    }
}
