//! What test runners say about their tests, read from their output.

/// Marks a line of a test that could not run: `*** SKIPPED name: reason ***`.
const MARK: &str = "*** SKIPPED ";

/// Tests counted so far, and those that could not run here.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Tests that passed.
    pub(super) passed: u64,
    /// Tests that failed.
    pub(super) failed: u64,
    /// `name: reason` of each test that could not run here. It counts as passed too: it says so itself.
    pub(super) skipped: Vec<String>,
}

impl Tally {
    /// Reads one line of a runner's output.
    pub(super) fn line(&mut self, line: &str) {
        let line = plain(line);
        if is_closing(&line) {
            self.passed += number_before(&line, "passed");
            self.failed += number_before(&line, "failed") + number_before(&line, "timed out");
        }
        self.skips(&line);
    }

    /// Finds the tests that could not run in any text.
    pub(super) fn skips(&mut self, text: &str) {
        for rest in text.split(MARK).skip(1) {
            if let Some((what, _)) = rest.split_once("***") {
                self.skipped.push(what.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
        self.skipped.dedup();
    }
}

/// Whether a line is the summary of cargo test, of nextest, or of the conformance program.
fn is_closing(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("test result:") || text.starts_with("Summary [") || is_plain_closing(text)
}

fn is_plain_closing(text: &str) -> bool {
    let mut words = text.split(' ');
    let numbers = (
        words.next().map(str::parse::<u64>),
        words.next(),
        words.next().map(str::parse::<u64>),
        words.next(),
    );
    matches!(numbers, (Some(Ok(_)), Some("passed,"), Some(Ok(_)), Some("failed")))
}

/// The number in front of a word, 0 if there is none.
fn number_before(line: &str, word: &str) -> u64 {
    let Some(before) = line.find(word).map(|place| line[..place].trim_end()) else { return 0 };
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// A line without colours.
fn plain(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.line(line));
        tally
    }

    #[test]
    fn cargo_test_is_summed_over_its_binaries() {
        let found = tally(&[
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored",
        ]);
        assert_eq!((found.passed, found.failed), (7, 3));
    }

    #[test]
    fn nextest_is_read_through_its_colours() {
        let found = tally(&[
            "\u{1b}[31;1m     Summary\u{1b}[0m [   0.1s] 14 tests run: 11 passed, 1 failed, 2 timed out",
        ]);
        assert_eq!((found.passed, found.failed), (11, 3));
    }

    #[test]
    fn the_conformance_program_is_read() {
        let found = tally(&["376 passed, 2 failed"]);
        assert_eq!((found.passed, found.failed), (376, 2));
    }

    #[test]
    fn other_lines_do_not_count() {
        let found = tally(&["test passed ... ok", "12 tests passed, probably", "PASS 3 passed"]);
        assert_eq!((found.passed, found.failed), (0, 0));
    }

    #[test]
    fn tests_that_could_not_run_are_kept_by_name() {
        let mut found = tally(&["*** SKIPPED one: needs root ***"]);
        found.skips("<system-err>\n*** SKIPPED two: no XDP\nhere ***\n</system-err>");
        assert_eq!(found.skipped, ["one: needs root", "two: no XDP here"]);
    }
}
