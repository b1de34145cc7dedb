//! The client against agents that answer rightly, wrongly or not at all.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use super::{Agent, AgentError};

const HELLO: &str = r#"{"id":1,"ok":{"version":2,"kernel":"6.12","rdma_core":"44.0"}}"#;

/// An agent that answers one connection with the given lines.
fn agent(lines: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        for line in lines {
            let mut request = String::new();
            stream.read_line(&mut request).unwrap();
            writeln!(stream.get_mut(), "{line}").unwrap();
        }
    });
    address
}

#[test]
fn handles_are_read_from_replies() {
    let mut agent = Agent::connect(agent(&[HELLO, r#"{"id":2,"ok":{"handle":7}}"#])).unwrap();
    assert_eq!(agent.alloc_pd().unwrap().0, 7);
}

#[test]
fn another_version_is_refused() {
    let hello = r#"{"id":1,"ok":{"version":1,"kernel":"","rdma_core":""}}"#;
    let error = Agent::connect(agent(Box::leak(Box::new([hello])))).unwrap_err();
    assert!(matches!(error, AgentError::Protocol(_)), "{error}");
}

#[test]
fn a_refusal_carries_the_error_number_and_the_call() {
    let refusal = r#"{"id":2,"error":{"kind":"verbs","errno":22,"message":"no"}}"#;
    let mut agent = Agent::connect(agent(Box::leak(Box::new([HELLO, refusal])))).unwrap();
    let error = agent.create_cq(0).unwrap_err();
    assert_eq!(error.errno(), Some(22));
    assert!(error.to_string().contains("create_cq"), "{error}");
}

#[test]
fn an_agent_that_goes_away_is_a_connection_error() {
    let mut agent = Agent::connect(agent(&[HELLO])).unwrap();
    assert!(matches!(agent.alloc_pd().unwrap_err(), AgentError::Connection(_)));
}

#[test]
fn a_broken_connection_is_made_anew_and_a_good_one_is_not() {
    let first = agent(&[HELLO]);
    let mut agent = Agent::connect(first).unwrap();
    assert!(!agent.restore().unwrap());
    assert!(agent.alloc_pd().is_err());
    // Nobody listens any more: that it tries shows that it knows.
    assert!(matches!(agent.restore().unwrap_err(), AgentError::Connection(_)));
}

#[test]
fn an_answer_to_another_request_is_a_protocol_error() {
    let mut agent = Agent::connect(agent(&[HELLO, r#"{"id":9,"ok":{"handle":7}}"#])).unwrap();
    assert!(matches!(agent.alloc_pd().unwrap_err(), AgentError::Protocol(_)));
}

#[test]
fn an_answer_without_what_was_asked_is_a_protocol_error() {
    let mut agent = Agent::connect(agent(&[HELLO, r#"{"id":2,"ok":{}}"#])).unwrap();
    assert!(matches!(agent.alloc_pd().unwrap_err(), AgentError::Protocol(_)));
}
