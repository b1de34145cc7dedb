//! What a completion means for whoever posted the work request.

use thiserror::Error;
use uroce_stack::{Completion, WcStatus};

/// Turns completions into results.
pub trait CompletionExt: Sized {
    /// The completion of a work request that succeeded.
    ///
    /// # Errors
    /// [`WcError`] when it failed.
    fn result(self) -> Result<Completion, WcError>;
}

impl CompletionExt for Completion {
    fn result(self) -> Result<Completion, WcError> {
        if self.status == WcStatus::Success { Ok(self) } else { Err(WcError { completion: self }) }
    }
}

/// A work request failed; its queue pair is in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "work request {} of queue pair {}: {}; {}",
    .completion.wr_id, .completion.qp_num, .completion.status, hint(.completion.status)
)]
pub struct WcError {
    /// What the completion queue said.
    pub completion: Completion,
}

impl WcError {
    /// How it failed.
    #[must_use]
    pub const fn status(&self) -> WcStatus {
        self.completion.status
    }
}

/// What it means, and what to do next.
const fn hint(status: WcStatus) -> &'static str {
    match status {
        WcStatus::Success => "nothing is wrong",
        WcStatus::LocLenErr => "the message did not fit the receive: post larger receives",
        WcStatus::LocQpOpErr => "the queue pair cannot carry it out: check the operation and max_rd_atomic",
        WcStatus::LocProtErr => {
            "an entry names memory that is not registered any more, too short, of another protection domain, \
             or without LOCAL_WRITE"
        }
        WcStatus::WrFlushErr => {
            "the queue pair went into error before its turn: look for an earlier completion that says why, \
             or an asynchronous event"
        }
        WcStatus::MwBindErr => "the memory window could not be bound: check keys, range and rights",
        WcStatus::BadRespErr => "the peer answered with something else: its implementation may be at fault",
        WcStatus::LocAccessErr => {
            "the memory a peer wrote to went away: keep it registered until the peer is done"
        }
        WcStatus::RemInvReqErr => {
            "the peer refused the request as invalid: a message larger than its receive, a READ that it \
             does not allow, or an unaligned atomic operation"
        }
        WcStatus::RemAccessErr => {
            "the peer refused the access: check rkey, address, length, and the rights of its memory region and \
             queue pair"
        }
        WcStatus::RemOpErr => "the peer failed to carry it out: look at its completions",
        WcStatus::RetryExcErr => {
            "the peer did not answer: check that it runs, that its queue pair is connected to this one, \
             and that UDP port 4791 is open"
        }
        WcStatus::RnrRetryExcErr => {
            "the peer had posted no receive: post more there, or raise rnr_retry or min_rnr_timer"
        }
        WcStatus::RemAbortErr => "the peer gave it up: look at its completions",
        WcStatus::FatalErr | WcStatus::GeneralErr => "the queue pair cannot be used any more: make another",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_to_do() {
        let completion = Completion { wr_id: 5, status: WcStatus::RetryExcErr, ..Completion::default() };
        let text = completion.result().expect_err("a failure").to_string();
        assert!(text.starts_with("work request 5 of queue pair 0x000000"), "{text}");
        assert!(text.ends_with("UDP port 4791 is open"), "{text}");
        assert!(Completion::default().result().is_ok());
    }
}
