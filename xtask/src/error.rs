//! The one error of the commands: a sentence for the person at the terminal.

use std::fmt;

/// Why a command could not do its work: what happened, what it means, what to do next.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// What everything here returns.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure described by its text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says what was being done when something failed.
pub(crate) trait Context<T> {
    /// Puts "`doing`: " in front of the error.
    fn context(self, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{doing}: {error}")))
    }
}
