//! `docs/verbs.md` names scenarios and tests: all of them exist, no scenario is missing, and neither is a deviation.

use std::fs;
use std::path::{Path, PathBuf};

use uroce_conformance::deviation;
use uroce_conformance::runner;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/verbs.md")).expect("the document is there")
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether it names a scenario, or with `*` at its end many.
fn is_scenario(word: &str) -> bool {
    word.contains('/') && !word.contains(".rs") && !word.contains(' ')
}

fn covers(word: &str, scenario: &str) -> bool {
    match word.strip_suffix('*') {
        Some(start) => scenario.starts_with(start),
        None => scenario == word,
    }
}

#[test]
fn every_scenario_it_names_exists() {
    let (text, names) = (document(), runner::names());
    let words: Vec<&str> = quoted(&text).filter(|word| is_scenario(word)).collect();
    assert!(words.len() > 50, "only {} scenarios are named", words.len());
    let unknown: Vec<_> = words.iter().filter(|word| !names.iter().any(|name| covers(word, name))).collect();
    assert!(unknown.is_empty(), "no such scenario: {unknown:?}");
}

#[test]
fn every_scenario_that_exists_is_named() {
    let text = document();
    let names = runner::names();
    let missing: Vec<_> = names.iter().filter(|name| !quoted(&text).any(|word| covers(word, name))).collect();
    assert!(missing.is_empty(), "not in docs/verbs.md: {missing:?}");
}

/// A test is named by its file, or as `file::function`.
#[test]
fn every_test_it_names_exists() {
    let text = document();
    let words: Vec<&str> = quoted(&text).filter(|word| word.contains(".rs")).collect();
    assert!(words.len() > 30, "only {} tests are named", words.len());
    for word in words {
        let (file, function) = word.split_once("::").unwrap_or((word, ""));
        let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(source.contains("#[test]"), "{file} has no tests");
        assert!(source.contains(&format!("fn {function}")), "{file} has no test {function}");
    }
}

#[test]
fn every_deviation_is_explained_under_its_number() {
    let text = document();
    for deviation in deviation::ALL {
        let row = format!("| {} | {} |", deviation.number, deviation.words);
        assert!(text.contains(&row), "docs/verbs.md lacks the row {row:?}");
    }
}
