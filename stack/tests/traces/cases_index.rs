//! Every case of the collection has a test whose name carries its number (`c17_duplicate_send_is_acked_not_executed`).
//!
//! The collection lies beside the repository, as the captures do: `shared/cases.md` (C, X) and `shared/security.md` (S).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What has no test, and why.
const WITHOUT_TEST: &[(&str, &str)] = &[
    ("S09", "advice on loading providers: there are none to load"),
    ("S11", "a statement, which the README makes: the ICRC is no signature"),
    ("S29", "RMPP and the user interface of MADs: neither exists here"),
    ("S30", "protocols above verbs: none is shipped"),
    ("S33", "advice on using rxe"),
];

#[test]
fn every_case_has_a_test_that_carries_its_number() {
    let (cases, tested) = (numbers_of_cases(), numbers_of_tests());
    assert!(cases.len() > 80, "only {} cases were found", cases.len());
    let excused: BTreeSet<String> = WITHOUT_TEST.iter().map(|(number, _)| (*number).to_owned()).collect();
    let missing: Vec<_> =
        cases.iter().filter(|case| !tested.contains(*case) && !excused.contains(*case)).collect();
    assert!(missing.is_empty(), "no test carries the number of {missing:?}");
    let strangers: Vec<_> = tested.difference(&cases).collect();
    assert!(strangers.is_empty(), "tests carry numbers that no case has: {strangers:?}");
    let idle: Vec<_> =
        excused.iter().filter(|case| tested.contains(*case) || !cases.contains(*case)).collect();
    assert!(idle.is_empty(), "no excuse is needed for {idle:?}");
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The numbers at the head of sections, list items and table rows.
fn numbers_of_cases() -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for name in ["cases.md", "security.md"] {
        let path = workspace().join("../shared").join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!(
                "{} cannot be read: {error}. The cases belong into shared beside the repository",
                path.display()
            )
        });
        let heads = text.lines().filter_map(|line| {
            ["### ", "- ", "| "].iter().find_map(|mark| line.strip_prefix(mark)).and_then(number)
        });
        numbers.extend(heads);
    }
    numbers
}

/// Those in the names of functions of every Rust file.
fn numbers_of_tests() -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for file in rust_files(&workspace()) {
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        numbers.extend(
            names.flat_map(|name| name.split('_').map_while(|part| whole_number(&part.to_uppercase()))),
        );
    }
    numbers
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The number that a heading begins with.
fn number(head: &str) -> Option<String> {
    let end = head.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(head.len());
    whole_number(&head[..end])
}

/// A letter of the collection and two digits.
fn whole_number(text: &str) -> Option<String> {
    let [letter, tens, ones] = text.as_bytes() else { return None };
    let is_number = matches!(letter, b'C' | b'S' | b'X') && tens.is_ascii_digit() && ones.is_ascii_digit();
    is_number.then(|| text.to_owned())
}

#[test]
fn numbers_are_read_from_headings_and_names() {
    assert_eq!(number("C01 Pad bytes"), Some("C01".to_owned()));
    assert_eq!(number("X04 CNP: opcode"), Some("X04".to_owned()));
    assert_eq!(number("S07 | NeVerMore"), Some("S07".to_owned()));
    for other in ["C1 x", "A01 x", "C011 x", "Source: list", ""] {
        assert_eq!(number(other), None, "{other}");
    }
}
