//! Standard output: results and nothing else. What is told on the way goes to standard error.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

use crate::error::{Context, Failure, Result};

/// Writes a line.
pub(crate) fn line(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        written => written.context("cannot write to the standard output"),
    }
}

/// Writes a value as JSON, indented for people.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value);
    line(text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?)
}

/// Writes a value as JSON in one line, for programs that read many.
pub(crate) fn compact_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value);
    line(text.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?)
}

/// Tells the person at the terminal what is going on.
pub(crate) fn note(text: impl Display) {
    // Nobody may be listening, which is fine.
    let _ = writeln!(io::stderr(), "{text}");
}
