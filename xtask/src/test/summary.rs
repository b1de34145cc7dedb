//! What came of the steps.

use std::time::Duration;

use serde_json::{Value, json};

use super::tally::Tally;

/// How one step ended.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It worked.
    Passed,
    /// It did not, or it was skipped where nothing may be.
    Failed(String),
    /// The machine cannot run it.
    Skipped(String),
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Line {
    /// Name of the step.
    pub(super) step: &'static str,
    /// How long it took.
    pub(super) time: Duration,
    /// How it ended.
    pub(super) verdict: Verdict,
    /// The tests it ran.
    pub(super) tally: Tally,
}

/// The table, what was skipped by name, and the closing line.
pub(super) fn text(lines: &[Line], total: Duration) -> String {
    let mut text = format!("\n{:<22}{:>9}  {}\n", "step", "seconds", "result");
    for line in lines {
        text += &format!("{:<22}{:>9.1}  {}\n", line.step, line.time.as_secs_f64(), result(line));
    }
    text += &format!("{:<22}{:>9.1}\n", "all", total.as_secs_f64());
    let skipped = skipped(lines);
    if !skipped.is_empty() {
        text += &format!("\n*** NOT RUN on this machine ({}) ***\n", skipped.len());
        skipped.iter().for_each(|what| text += &format!("  {what}\n"));
    }
    text + "\n" + &closing(lines)
}

/// The same as JSON.
pub(super) fn json(lines: &[Line], total: Duration) -> Value {
    let list: Vec<Value> = lines.iter().map(entry).collect();
    json!({
        "steps": list,
        "seconds": total.as_secs_f64(),
        "passed": count(lines, |verdict| matches!(verdict, Verdict::Passed)),
        "failed": count(lines, is_failed),
        "not_run": skipped(lines),
    })
}

/// Whether any step failed.
pub(super) fn failed(lines: &[Line]) -> bool {
    count(lines, is_failed) > 0
}

fn closing(lines: &[Line]) -> String {
    let passed = count(lines, |verdict| matches!(verdict, Verdict::Passed));
    let skipped = count(lines, |verdict| matches!(verdict, Verdict::Skipped(_)));
    format!("steps: {passed} passed, {} failed, {skipped} skipped", count(lines, is_failed))
}

fn is_failed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(_))
}

fn count(lines: &[Line], which: fn(&Verdict) -> bool) -> usize {
    lines.iter().filter(|line| which(&line.verdict)).count()
}

fn result(line: &Line) -> String {
    let (passed, failed) = (line.tally.passed, line.tally.failed);
    let tests =
        if passed + failed > 0 { format!(", {passed} tests passed, {failed} failed") } else { String::new() };
    match &line.verdict {
        Verdict::Passed => format!("ok{tests}"),
        Verdict::Failed(reason) => format!("FAILED{tests}: {reason}"),
        Verdict::Skipped(_) => "SKIPPED".into(),
    }
}

/// Steps and single tests that could not run, with their reasons.
fn skipped(lines: &[Line]) -> Vec<String> {
    let steps = lines.iter().filter_map(|line| match &line.verdict {
        Verdict::Skipped(reason) => Some(format!("{}: {reason}", line.step)),
        _ => None,
    });
    let tests = lines.iter().flat_map(|line| line.tally.skipped.iter().cloned());
    steps.chain(tests).collect()
}

fn entry(line: &Line) -> Value {
    let (result, reason) = match &line.verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Failed(reason) => ("failed", Some(reason)),
        Verdict::Skipped(reason) => ("skipped", Some(reason)),
    };
    json!({
        "step": line.step,
        "seconds": line.time.as_secs_f64(),
        "result": result,
        "reason": reason,
        "tests_passed": line.tally.passed,
        "tests_failed": line.tally.failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verdict: Verdict, tally: Tally) -> Line {
        Line { step: "tests", time: Duration::from_millis(1500), verdict, tally }
    }

    #[test]
    fn what_could_not_run_is_named_and_counted() {
        let tally = Tally { passed: 3, failed: 0, skipped: vec!["veth: needs root".into()] };
        let lines =
            [line(Verdict::Passed, tally), line(Verdict::Skipped("no guest".into()), Tally::default())];
        let text = text(&lines, Duration::from_secs(2));
        assert!(text.contains("  veth: needs root\n") && text.contains("  tests: no guest\n"), "{text}");
        assert!(text.ends_with("steps: 1 passed, 0 failed, 1 skipped"), "{text}");
        assert!(!failed(&lines));
    }

    #[test]
    fn one_failure_fails_all() {
        let lines = [line(Verdict::Failed("exit status: 1".into()), Tally::default())];
        assert!(failed(&lines));
        assert_eq!(json(&lines, Duration::ZERO)["failed"], 1);
    }
}
