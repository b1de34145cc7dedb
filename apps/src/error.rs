//! Why a command failed: one sentence for whoever typed it.

use std::fmt::{self, Display};
use std::io;

/// A command's result.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What happened, what it means, what to do next.
    Said(String),
    /// The command line asks for something that cannot be.
    Usage(String),
    /// The peer has closed the connection on which the two ends agree.
    PeerGone,
    /// Ctrl-C, or another signal that asks to end.
    Interrupted,
    /// Whoever read our output does not want more of it.
    OutputClosed,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// The exit status: 1 failed, 2 wrong usage, 130 interrupted.
    pub(crate) const fn status(&self) -> u8 {
        match self {
            Self::Said(_) | Self::PeerGone | Self::OutputClosed => 1,
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) | Self::Usage(text) => f.write_str(text),
            Self::PeerGone => f.write_str(
                "the peer closed the connection: it failed or was stopped; what it printed tells why",
            ),
            Self::Interrupted => f.write_str("interrupted; nothing is left attached"),
            Self::OutputClosed => f.write_str("the output was closed"),
        }
    }
}

impl From<uroce::Error> for Failure {
    fn from(error: uroce::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<uroce::WcError> for Failure {
    fn from(error: uroce::WcError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<uroce::PostError> for Failure {
    fn from(error: uroce::PostError) -> Self {
        Self::new(format!("posting failed: {error}"))
    }
}

impl From<uroce::PostErrorKind> for Failure {
    fn from(error: uroce::PostErrorKind) -> Self {
        Self::new(format!("posting failed: {error}"))
    }
}

impl From<uroce::HostError> for Failure {
    fn from(error: uroce::HostError) -> Self {
        Self::new(error.to_string())
    }
}

/// Says what was being done when something failed.
pub(crate) trait Context<T> {
    /// The error's text after `doing` and a colon.
    fn context(self, doing: impl Display) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{doing}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_status() {
        let all = [Failure::new("x"), Failure::usage("x"), Failure::Interrupted, Failure::OutputClosed];
        assert_eq!(all.map(|failure| failure.status()), [1, 2, 130, 1]);
    }
}
