//! As much of HTTP as a scraper needs: one request on a connection, GET or HEAD, no body.
//!
//! Whoever can connect is a stranger. So one connection is served at a time, a request has one buffer and one deadline,
//! an answer another one, and nothing grows with what arrives.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::control::is_transient;
use crate::error::Result;
use crate::{interrupt, tcp};

/// The longest request; a scraper's has a few hundred bytes.
const MAX_REQUEST: usize = 4096;
/// Header fields of a request at most.
const MAX_FIELDS: usize = 64;
/// How long a request, and an answer, may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at a stream.
const PERIOD: Duration = Duration::from_millis(1);

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

impl Answer {
    /// A sentence.
    pub(super) fn said(status: &'static str, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{text}\n") }
    }
}

/// Answers everybody who asks for a path, until the command is asked to end.
pub(super) fn serve(listener: &TcpListener, answer: impl Fn(&str) -> Result<Answer>) -> Result<()> {
    loop {
        let (mut stream, peer) = tcp::accept(listener)?;
        match converse(&mut stream, &answer)? {
            Ok(()) => {}
            Err(error) => tracing::debug!(%peer, %error, "a scrape failed"),
        }
    }
}

/// One request and its answer. The outer error is ours and ends the command, the inner one is the peer's.
fn converse(stream: &mut TcpStream, answer: &impl Fn(&str) -> Result<Answer>) -> Result<io::Result<()>> {
    let mut buffer = [0; MAX_REQUEST];
    let request = match read(stream, &mut buffer)? {
        Ok(request) => request,
        Err(error) => return Ok(Err(error)),
    };
    let (answer, with_body) = match request {
        Request::Get(path) => (answer(&path)?, true),
        Request::Head(path) => (answer(&path)?, false),
        Request::Other => (Answer::said("405 Method Not Allowed", "only GET and HEAD are understood"), true),
        Request::TooLong => {
            (Answer::said("431 Request Header Fields Too Large", "the request is too long"), true)
        }
        Request::Malformed => (Answer::said("400 Bad Request", "this is no HTTP request"), true),
    };
    write(stream, &bytes(&answer, with_body))
}

#[derive(Debug, PartialEq, Eq)]
enum Request {
    Get(String),
    Head(String),
    Other,
    TooLong,
    Malformed,
}

/// What a peer has said so far; `None`: the rest is to come.
fn parse(bytes: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(whole(&request)),
        Ok(httparse::Status::Partial) if bytes.len() < MAX_REQUEST => None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => Some(Request::TooLong),
        Err(_) => Some(Request::Malformed),
    }
}

fn whole(request: &httparse::Request<'_, '_>) -> Request {
    let path = request.path.and_then(|path| path.split('?').next()).unwrap_or_default().to_owned();
    match request.method {
        Some("GET") => Request::Get(path),
        Some("HEAD") => Request::Head(path),
        _ => Request::Other,
    }
}

fn read(stream: &mut TcpStream, buffer: &mut [u8; MAX_REQUEST]) -> Result<io::Result<Request>> {
    let stopwatch = Stopwatch::start();
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => filled += count,
            Err(error) if is_transient(&error) => interrupt::pause_unless_asked(PERIOD)?,
            Err(error) => return Ok(Err(error)),
        }
        if let Some(request) = parse(&buffer[..filled]) {
            return Ok(Ok(request));
        }
        if stopwatch.elapsed() > PATIENCE {
            return Ok(Err(io::ErrorKind::TimedOut.into()));
        }
    }
}

fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> Result<io::Result<()>> {
    let stopwatch = Stopwatch::start();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_transient(&error) => interrupt::pause_unless_asked(PERIOD)?,
            Err(error) => return Ok(Err(error)),
        }
        if stopwatch.elapsed() > PATIENCE {
            return Ok(Err(io::ErrorKind::TimedOut.into()));
        }
    }
    Ok(Ok(()))
}

fn bytes(answer: &Answer, with_body: bool) -> Vec<u8> {
    let Answer { status, content_type, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if with_body { (head + body).into_bytes() } else { head.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let get = |path: &str| Some(Request::Get(path.to_owned()));
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"), get("/metrics"));
        assert_eq!(parse(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"), get("/metrics"));
        assert_eq!(parse(b"HEAD / HTTP/1.1\r\n\r\n"), Some(Request::Head("/".into())));
        assert_eq!(parse(b"POST / HTTP/1.1\r\n\r\n"), Some(Request::Other));
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHo"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn strangers_get_no_further() {
        assert_eq!(parse(b"\x16\x03\x01\x02\x00\x01"), Some(Request::Malformed));
        let endless = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_REQUEST));
        assert_eq!(parse(&endless.as_bytes()[..MAX_REQUEST]), Some(Request::TooLong));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS + 1));
        assert_eq!(parse(many.as_bytes()), Some(Request::TooLong));
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let text = String::from_utf8(bytes(&Answer::said("200 OK", "fine"), true)).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("Content-Length: 5\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\nfine\n"), "{text}");
        assert!(bytes(&Answer::said("200 OK", "fine"), false).ends_with(b"close\r\n\r\n"));
    }
}
