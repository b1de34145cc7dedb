//! Work requests: values that own what they say, to be built, kept and posted in any order.

mod data;
mod operations;
mod recv;
mod send;
mod sge;

pub use data::Word;
pub use recv::RecvWr;
pub use send::SendWr;
pub use sge::SgeList;
