//! Captured RoCEv2 traffic, replayed against the stack.
//!
//! The captures are data of third parties and stay outside the repository, in `shared/captures` beside it. A test
//! that does not find them fails and names what is missing.

mod capture;
mod replay;

pub use capture::{CaptureError, Frame, Set, frames};
pub use replay::{Outcome, replay};
