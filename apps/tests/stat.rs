//! Running endpoints, looked at from outside.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use common::{Running, pause, positive, start_here, uroce};
use serde_json::Value;

/// How long a command may take to start.
const PATIENCE: u32 = 200;
const PERIOD: Duration = Duration::from_millis(50);

/// A command that runs for long, both ends in one process; `None` where endpoints cannot be looked at.
fn busy() -> Option<Running> {
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() && std::fs::create_dir_all("/run/uroce").is_err() {
        println!("SKIPPED: there is no folder for sockets; run as root or set XDG_RUNTIME_DIR");
        return None;
    }
    Some(start_here("bw write cable -q 2 -s 4K -D 60"))
}

/// What its two devices say once both have queue pairs and have sent something.
fn of(running: &Running) -> Vec<Value> {
    for _ in 0..PATIENCE {
        let found = uroce(&format!("stat --pid {} --json", running.pid())).json();
        let found = found.as_array().expect("an array").clone();
        let ready = |one: &Value| {
            one["queue_pairs"].as_array().is_some_and(|all| all.len() == 2)
                && one["counters"]["sent_pkts"].as_u64() > Some(0)
        };
        if found.len() == 2 && found.iter().all(ready) {
            return found;
        }
        pause(PERIOD);
    }
    panic!("process {} does not tell of its devices", running.pid());
}

fn end(running: Running) {
    let pid = running.pid();
    running.signal("INT");
    running.wait().failed(130, &["interrupted"]);
    assert_eq!(uroce(&format!("stat --pid {pid} --json")).good(), "[]\n");
}

#[test]
fn an_endpoint_tells_of_its_device_and_queue_pairs() {
    let Some(running) = busy() else { return };
    for endpoint in of(&running) {
        assert_eq!(endpoint["pid"].as_u64(), Some(running.pid().into()), "{endpoint}");
        assert_eq!((&endpoint["backend"], &endpoint["port"]), (&"cable".into(), &1.into()), "{endpoint}");
        assert_eq!(endpoint["command"], "bw write cable -q 2 -s 4K -D 60");
        positive(&endpoint["counters"], &["sent_pkts", "rcvd_pkts"]);
        positive(&endpoint["interface_counters"], &["tx_frames", "rx_bytes"]);
        // Every counter of a device is there, also those that are 0.
        assert_eq!(endpoint["counters"]["qkey_viol_cntr"], 0, "{endpoint}");
        for qp in endpoint["queue_pairs"].as_array().expect("an array") {
            assert_eq!((&qp["service"], &qp["state"]), (&"RC".into(), &"RTS".into()), "{qp}");
            positive(&qp["counters"], &["sent_pkts"]);
        }
    }
    end(running);
}

#[test]
fn counters_are_shown_to_people() {
    let Some(running) = busy() else { return };
    of(&running);
    let pid = running.pid();
    let list = uroce("stat").good();
    let ours = list.lines().filter(|line| line.trim_start().starts_with(&format!("{pid} ")));
    assert_eq!(ours.count(), 2, "{list}");
    let text = uroce(&format!("stat --pid {pid}")).good();
    assert!(
        text.contains("sent_pkts") && text.contains(" RC RTS\n") && !text.contains("qkey_viol_cntr"),
        "{text}"
    );
    let all = uroce(&format!("stat --pid {pid} --all")).good();
    assert!(all.contains("qkey_viol_cntr  "), "{all}");
    end(running);
}

#[test]
fn watching_shows_differences_and_rates() {
    let Some(running) = busy() else { return };
    of(&running);
    let watch = start_here(&format!("stat --pid {} --watch 0.2", running.pid()));
    let lines = start_here(&format!("stat --pid {} --watch 0.2 --json", running.pid()));
    pause(Duration::from_millis(1500));
    for watching in [&watch, &lines] {
        watching.signal("INT");
    }
    let text = watch.wait().good();
    assert!(text.contains("/s\n") && text.contains("  +"), "{text}");
    let lines = lines.wait().good();
    assert!(lines.lines().count() >= 2, "{lines}");
    for line in lines.lines() {
        assert!(serde_json::from_str::<Value>(line).expect("a line is JSON").is_array());
    }
    end(running);
}

#[test]
fn a_killed_endpoint_is_forgotten() {
    let Some(running) = busy() else { return };
    of(&running);
    let pid = running.pid();
    running.signal("KILL");
    drop(running);
    uroce(&format!("stat --pid {pid}")).failed(1, &["no endpoint runs there"]);
    uroce("stat no-such-interface").failed(1, &["no endpoint runs there"]);
}

/// Connects to a server of metrics, says something, and returns what it answers.
fn converse(address: SocketAddr, said: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream.write_all(said).expect("it reads");
    let mut answer = Vec::new();
    // Who is turned away may find the connection reset.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn scrapers_get_openmetrics() {
    let Some(running) = busy() else { return };
    of(&running);
    let pid = running.pid();
    let mut server = start_here(&format!("stat --pid {pid} --serve 127.0.0.1:0"));
    let said = server.await_stderr("OpenMetrics at http://");
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    let address = address.parse().expect("an address");
    let answer = converse(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("application/openmetrics-text"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let device = format!(r#"device="{}",port="1",pid="{pid}",endpoint="0""#, interface_of(body));
    assert!(body.contains(&format!("uroce_port_sent_pkts_total{{{device}}} ")), "{body}");
    assert!(body.contains(&format!("uroce_qp_sent_pkts_total{{{device},qp=\"0x")), "{body}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    // Who says too much, nothing sensible, or nothing at all, keeps nobody else from it.
    let silent = TcpStream::connect(address).expect("it listens");
    let endless = [b"GET /".as_slice(), &[b'x'; 100_000]].concat();
    assert!(!converse(address, &endless).contains("200 OK"));
    assert!(converse(address, b"\x16\x03\x01\x00\x00").starts_with("HTTP/1.1 400"));
    assert!(converse(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(converse(address, b"GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let head = converse(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    drop(silent);
    server.signal("INT");
    server.wait().good();
    end(running);
}

fn interface_of(body: &str) -> &str {
    body.split("device=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a label")
}
