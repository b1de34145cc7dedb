//! Commands that connect through the connection manager, in two network namespaces. Needs root and AF_XDP; says loudly when
//! it cannot run.
#![cfg(feature = "af-xdp")]

mod common;

use std::path::PathBuf;

use common::{Ended, Running, is_attached, one_at_a_time, positive, serve_in, start_in, uroce_in};
use serde_json::Value;
use uroce_nic::testing::{VethPair, skip};

const V4: &str = "10.77.0.1";
const V6: &str = "fd77::1";

/// Runs a test with a link between two namespaces, and sees to it that nothing stays attached.
fn with_link(test: &str, body: impl FnOnce(&VethPair)) {
    let _alone = one_at_a_time();
    let pair = match common::link(4200) {
        Ok(pair) => pair,
        Err(reason) => return skip(&format_args!("{test}: {reason}")),
    };
    body(&pair);
    assert!(!is_attached(&pair.left) && !is_attached(&pair.right), "an XDP program stayed attached");
}

/// A file of this test process; gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("uroce-{name}-{}", std::process::id())))
    }

    fn with(name: &str, bytes: &[u8]) -> Self {
        let file = Self::new(name);
        std::fs::write(&file.0, bytes).expect("a scratch file");
        file
    }

    fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).expect("it was written")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 251) as u8).collect()
}

/// Ends a server as a person does; what it told, a line each.
fn end(server: Running) -> Vec<Value> {
    server.signal("INT");
    let ended = server.wait();
    ended.failed(130, &["interrupted; nothing is left attached"]);
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ping(pair: &VethPair, host: &str, server: &str, client: &str) -> [Ended; 2] {
    let server = serve_in(&pair.left, &format!("ping eth0 {server}"));
    let client = uroce_in(&pair.right, &format!("ping eth0 {host} {client}"));
    let ends = [server.wait(), client];
    println!("server and client: {ends:#?}");
    ends
}

#[test]
fn ping_has_the_data_of_rping_at_both_ends() {
    with_link("ping_has_the_data_of_rping_at_both_ends", |pair| {
        for (host, gid) in [(V4, ""), (V6, "-g 2")] {
            let [server, client] = ping(pair, host, &format!("-v {gid}"), &format!("-v -V -C 3 -S 40 {gid}"));
            let text = client.good();
            assert!(text.starts_with("ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ\n"), "{text}");
            assert!(
                text.contains("\nping data: rdma-ping-2: CDEFG") && text.contains("\n3 pings of 40 bytes"),
                "{text}"
            );
            let text = server.good();
            assert!(
                text.contains("server ping data: rdma-ping-2: CDEFG") && text.contains("3 pings of "),
                "{text}"
            );
        }
    });
}

#[test]
fn ping_has_its_figures() {
    with_link("ping_has_its_figures", |pair| {
        let options = "-c -a 10.77.0.1 -p 7000 -C 100 -S 65535 -V --json";
        let server = serve_in(&pair.left, "ping eth0 -s -a 10.77.0.1 -p 7000 --json");
        let figures = uroce_in(&pair.right, &format!("ping eth0 {options}")).json();
        assert_eq!(
            (figures["pings"].as_u64(), figures["size"].as_u64()),
            (Some(100), Some(65535)),
            "{figures}"
        );
        positive(&figures, &["min_us", "avg_us", "max_us"]);
        let served = server.wait().json();
        assert_eq!(
            (served["pings"].as_u64(), served["client"].as_str()),
            (Some(100), Some("10.77.0.2")),
            "{served}"
        );
    });
}

#[test]
fn ping_goes_on_until_it_is_interrupted() {
    with_link("ping_goes_on_until_it_is_interrupted", |pair| {
        let server = serve_in(&pair.left, "ping eth0 -P --json");
        for _ in 0..2 {
            let client = start_in(&pair.right, &format!("ping eth0 {V4} --json"));
            common::pause(std::time::Duration::from_millis(1500));
            client.signal("INT");
            positive(&client.wait().json(), &["pings", "avg_us"]);
        }
        assert_eq!(end(server).len(), 2);
    });
}

#[test]
fn ping_tells_why_there_is_no_connection() {
    with_link("ping_tells_why_there_is_no_connection", |pair| {
        uroce_in(&pair.right, "ping eth0 10.77.0.99 -C 1")
            .failed(1, &["10.77.0.99:7174", "No route to host"]);
        let server = serve_in(&pair.left, "ping eth0");
        uroce_in(&pair.right, &format!("ping eth0 {V4} -C 1 -p 9")).failed(1, &["nobody listens on port 9"]);
        drop(end(server));
    });
}

#[test]
fn a_file_goes_there_and_back() {
    with_link("a_file_goes_there_and_back", |pair| {
        let (source, copy) = (Scratch::with("source", &pattern(5_000_001)), Scratch::new("copy"));
        let server = serve_in(&pair.left, "serve eth0 --size 8M --json");
        let put = format!("put eth0 {V4} {} --offset 0x1001 --json", source.path());
        let figures = uroce_in(&pair.right, &put).json();
        assert_eq!(figures["bytes"].as_u64(), Some(5_000_001), "{figures}");
        let get = format!("get eth0 {V4} --offset 4097 --length 5000001 -o {}", copy.path());
        let text = uroce_in(&pair.right, &get).good();
        assert!(text.contains("5000001 bytes in ") && text.contains(" Gbit/s"), "{text}");
        assert!(copy.bytes() == source.bytes(), "the copy differs");
        let told = end(server);
        let events: Vec<&str> = told.iter().filter_map(|news| news["event"].as_str()).collect();
        assert_eq!(events, ["connected", "left", "connected", "left"], "{told:#?}");
        assert_eq!(told[1]["writes"].as_u64(), Some(20), "{told:#?}");
        assert_eq!(told[3]["reads"].as_u64(), Some(20), "{told:#?}");
    });
}

#[test]
fn a_word_is_a_lock() {
    with_link("a_word_is_a_lock", |pair| {
        let server = serve_in(&pair.left, "serve eth0 --size 64 --json");
        let found = uroce_in(&pair.right, &format!("cas eth0 {V4} 8 0 0xff --json")).json();
        assert_eq!((found["swapped"].as_bool(), found["found"].as_u64()), (Some(true), Some(0)), "{found}");
        uroce_in(&pair.right, &format!("cas eth0 {V4} 8 0 0xff"))
            .failed(1, &["0xff, not 0x0", "nothing was changed"]);
        let text = uroce_in(&pair.right, &format!("cas eth0 {V4} 8 0xff 0")).good();
        assert_eq!(text, "the word at 8 was 0xff and is 0x0 now\n");
        uroce_in(&pair.right, &format!("cas eth0 {V4} 9 0 1")).failed(2, &["multiple of 8"]);
        drop(end(server));
    });
}

#[test]
fn what_a_server_does_not_allow_is_told() {
    with_link("what_a_server_does_not_allow_is_told", |pair| {
        let file = Scratch::with("shown", &pattern(1000));
        let at = |what: &str| uroce_in(&pair.right, &what.replace("HOST", &format!("eth0 {V4}")));
        let server =
            serve_in(&pair.left, &format!("serve eth0 --file {} --allow 10.77.0.2 --json", file.path()));
        assert_eq!(at("get HOST").good().len(), String::from_utf8_lossy(&pattern(1000)).len());
        at("get HOST --offset 1000 --length 1").failed(1, &["out of bounds", "1000 bytes"]);
        at(&format!("put HOST {}", file.path())).failed(1, &["reading only", "--write"]);
        at("cas HOST 0 0 1").failed(1, &["reading only"]);
        at("get HOST -p 9").failed(1, &["nobody listens on port 9"]);
        drop(end(server));
        let server = serve_in(&pair.left, "serve eth0 --allow 10.78.0.0/16 --allow fd00::/8 --json");
        at("get HOST").failed(1, &["refused the connection", "--allow"]);
        let told = end(server);
        assert_eq!((told.len(), told[0]["event"].as_str()), (1, Some("refused")), "{told:#?}");
    });
}

#[test]
fn a_client_that_is_killed_is_noticed() {
    with_link("a_client_that_is_killed_is_noticed", |pair| {
        let server = serve_in(&pair.left, "serve eth0 --json");
        let mut client = std::process::Command::new("ip")
            .args(["netns", "exec", pair.right.name(), common::PROGRAM, "put", "eth0", V4, "-"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        // It waits for its standard input.
        common::pause(std::time::Duration::from_secs(2));
        client.kill().expect("it runs");
        client.wait().expect("it was killed");
        common::pause(std::time::Duration::from_secs(25));
        let told = end(server);
        let events: Vec<&str> = told.iter().filter_map(|news| news["event"].as_str()).collect();
        assert_eq!(events, ["connected", "vanished"], "{told:#?}");
    });
}

#[test]
fn measurements_may_be_connected_by_the_connection_manager() {
    with_link("measurements_may_be_connected_by_the_connection_manager", |pair| {
        for command in ["bw write", "bw send", "bw read", "lat send", "lat write"] {
            let queues = if command.starts_with("bw") { "-q 3" } else { "" };
            let server = serve_in(&pair.left, &format!("{command} eth0 --cm"));
            let report = uroce_in(&pair.right, &format!("{command} eth0 {V4} -R {queues} -n 300 --json"));
            println!("{:#?}", server.wait());
            positive(&report.json(), &[if queues.is_empty() { "p50_us" } else { "gbps" }]);
        }
        let server = serve_in(&pair.left, "bw write eth0 --cm");
        uroce_in(&pair.right, &format!("bw write eth0 {V4}"))
            .failed(1, &["-c RC --cm", "the same at both ends"]);
        server.wait().failed(1, &["refused"]);
        uroce_in(&pair.left, "bw send eth0 --cm -c UD").failed(2, &["--cm", "RC only"]);
    });
}
