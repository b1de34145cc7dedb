//! Packet traces: what a peer sends, what the engine answers, what completes. A test that is named for a case has its
//! number (c17_, s03_, x05_); one that is named for a section of the protocol has that (p4_2_).

mod admission;
mod bad_input;
mod common;
mod completions;
mod many;
mod modify;
mod requester_ack;
mod requester_atomic;
mod requester_errors;
mod requester_order;
mod requester_read;
mod requester_retry;
mod requester_rnr;
mod requester_send;
mod responder_access;
mod responder_atomic;
mod responder_fatal;
mod responder_order;
mod responder_read;
mod responder_rnr;
mod responder_write;
mod secrets;
mod states;
