//! Connection management as it was captured: each message is read and written again byte by byte, and our connection
//! manager, put in the place of either side, says the same.

mod data;
mod mads;
mod messages;
mod replay;
mod session;
mod sessions;
